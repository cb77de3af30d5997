"""Objects that exercises ask for and that the library itself does not use."""
from __future__ import annotations


def plan(rows: int) -> dict[str, str]:
    """How to lay nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)) and a batch of so many rows on four
    devices: {name: "B", "S0" or "S1"}.

    Few rows: cut the weights, so that activations move, 64 numbers for each row. Many: cut the batch, so that gradients of
    the weights do.
    """
    names = ("x", "labels", "0.weight", "0.bias", "2.weight", "2.bias")
    if rows > 512:
        return dict.fromkeys(names, "B") | {"x": "S0", "labels": "S0"}
    return dict.fromkeys(names, "B") | {"0.weight": "S0", "0.bias": "S0", "2.weight": "S1"}
