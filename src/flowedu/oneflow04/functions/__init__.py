"""Functions of OneFlow 0.4 for blobs and tensors, by topic; the names are those of `flow`."""
