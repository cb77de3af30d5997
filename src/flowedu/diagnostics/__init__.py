"""Error reports for failed calls: `explain` writes the text, `present` wraps the public functions."""
