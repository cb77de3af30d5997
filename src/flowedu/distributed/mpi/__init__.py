"""Ranks that are processes, by MPI."""
