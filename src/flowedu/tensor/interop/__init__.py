"""Conversion between tensors and objects of Python and other libraries."""
