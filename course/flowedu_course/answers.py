"""Objects that exercises ask for and that the library itself does not use."""
from __future__ import annotations


def plan(rows: int) -> dict[str, str]:
    """Choose layouts on four devices for nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).

    Returns {name: "B", "S0", or "S1"} of the weights and of a batch of `rows` rows. For few rows it splits
    the weights, so that only activations move (64 values per row). For many rows it splits the batch, so that
    only gradients of the weights move.
    """
    names = ("x", "labels", "0.weight", "0.bias", "2.weight", "2.bias")
    if rows > 512:
        return dict.fromkeys(names, "B") | {"x": "S0", "labels": "S0"}
    return dict.fromkeys(names, "B") | {"0.weight": "S0", "0.bias": "S0", "2.weight": "S1"}
