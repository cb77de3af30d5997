"""In-place writes: methods such as add_, the memory they change, and the history."""
