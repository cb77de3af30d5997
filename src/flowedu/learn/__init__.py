"""Running lessons."""
