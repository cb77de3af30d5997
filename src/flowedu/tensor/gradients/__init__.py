"""Gradients of tensors: backward and grad, hooks, modes, and names of tape nodes."""
