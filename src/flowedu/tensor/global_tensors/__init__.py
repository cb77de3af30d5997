"""Functions and methods of global tensors (chapter 6)."""
