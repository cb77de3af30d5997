"""compatible: compatible.single_client is oneflow itself, which has the names of both 0.4 and 1.0."""
