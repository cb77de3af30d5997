"""flow.random: seeds. Initial values and dropout differ from run to run unless a seed is set."""
from __future__ import annotations

from flowedu.context import gen_seed, set_seed


def seed(value: int | None) -> None:
    """Make everything random that is made from now on reproducible (None: different every time)."""
    set_seed(value)


__all__ = ["gen_seed", "seed"]
