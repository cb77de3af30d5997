"""Functions that change the shapes of tensors, and split or join tensors."""
