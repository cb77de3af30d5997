"""Indexing, gather and scatter, sorting, and searching."""
