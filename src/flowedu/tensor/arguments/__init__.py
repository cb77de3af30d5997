"""Checks of arguments, and types of arguments for annotations."""
