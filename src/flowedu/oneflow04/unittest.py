"""Base classes of OneFlow's own tests: flow.unittest. Python's unittest is imported on first use."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.job.session import clear_default_session
from flowedu.diagnostics.lazy_imports import lazy_import
from flowedu.oneflow04 import unittest_env as env

_unknown, _ = lazy_import(__name__, {})


def __getattr__(name: str) -> type:
    """Return the TestCase class, which is created on first use."""
    if name != "TestCase":
        return _unknown(name)
    import unittest

    class TestCase(unittest.TestCase):
        """Base class of tests, each of which starts in a new session."""

        def setUp(self) -> None:
            clear_default_session()

    globals()["TestCase"] = TestCase
    return TestCase


def num_nodes_required(num_nodes: int) -> Callable:
    """Return a decorator that stores the number of nodes that a test needs.

    Args:
        num_nodes: the number of nodes.
    """
    def mark(f):
        f.__oneflow_test_case_num_nodes_required__ = num_nodes
        return f
    return mark


def _unless(nodes: int, devices: int, name: str) -> Callable[[], Callable]:
    def decorator():
        import unittest
        there = env.node_size() == nodes and env.device_num() == devices
        return unittest.skipUnless(there, f"only runs when node_num is {nodes} and device_num is {devices}")

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = (f"Return a decorator that skips a test unless flow.unittest.env reports {nodes} "
                         f"nodes of {devices} devices each.")
    return decorator


skip_unless_1n1d = _unless(1, 1, "skip_unless_1n1d")
skip_unless_1n2d = _unless(1, 2, "skip_unless_1n2d")
skip_unless_1n4d = _unless(1, 4, "skip_unless_1n4d")
skip_unless_2n1d = _unless(2, 1, "skip_unless_2n1d")
skip_unless_2n2d = _unless(2, 2, "skip_unless_2n2d")
skip_unless_2n4d = _unless(2, 4, "skip_unless_2n4d")
