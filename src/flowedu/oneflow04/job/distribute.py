"""flow.distribute: split, broadcast and auto for blob.with_distribute, layers.dense and get_variable."""
from __future__ import annotations

from flowedu.oneflow04.hints import (
    AutoDistribute,
    BroadcastDistribute,
    Distribute,
    SplitDistribute,
    assert_is_valid_distribute,
    auto,
    broadcast,
    split,
)

__all__ = ["AutoDistribute", "BroadcastDistribute", "Distribute", "SplitDistribute", "assert_is_valid_distribute", "auto",
           "broadcast", "consistent_strategy", "consistent_strategy_enabled", "mirrored_strategy",
           "mirrored_strategy_enabled", "split"]


def mirrored_strategy():
    """Deprecated: flow.scope.mirrored_view()."""
    return _renamed("mirrored_strategy", "mirrored_view")


def consistent_strategy():
    """Deprecated: flow.scope.consistent_view()."""
    return _renamed("consistent_strategy", "consistent_view")


def mirrored_strategy_enabled() -> bool:
    """Deprecated: flow.scope.mirrored_view_enabled()."""
    return _renamed("mirrored_strategy_enabled", "mirrored_view_enabled")


def consistent_strategy_enabled() -> bool:
    """Deprecated: flow.scope.consistent_view_enabled()."""
    return _renamed("consistent_strategy_enabled", "consistent_view_enabled")


def _renamed(old: str, new: str):
    from flowedu.oneflow04.job import scope
    print(f"WARNING: flow.distribute.{old} has been deprecated. Please use flow.scope.{new}.")
    return getattr(scope, new)()
