"""Runs lessons, compiles what they write, checks exercises."""
