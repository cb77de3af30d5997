"""Optimizations with identical results: specialized records and passes that register themselves.

Everything runs without them.
"""
