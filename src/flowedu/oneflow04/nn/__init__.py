"""Functions of blobs: flow.nn of OneFlow 0.4."""
