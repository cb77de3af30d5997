"""compatible: compatible.single_client is oneflow itself, whose names of 0.4 are beside those of 1.0."""
