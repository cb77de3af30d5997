"""Reductions, cumulative results along an axis, and covariances."""
