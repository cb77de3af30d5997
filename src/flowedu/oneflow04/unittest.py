"""flow.unittest: base classes of OneFlow's own tests. Python's unittest is imported at the first use."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.job.session import clear_default_session
from flowedu.diagnostics.lazy_imports import lazy_import
from flowedu.oneflow04 import test_env as env

_unknown, _ = lazy_import(__name__, {})


def __getattr__(name: str) -> type:
    if name != "TestCase":
        return _unknown(name)
    import unittest

    class TestCase(unittest.TestCase):
        """Every test starts in a session of its own."""

        def setUp(self) -> None:
            clear_default_session()

    globals()["TestCase"] = TestCase
    return TestCase


def num_nodes_required(num_nodes: int) -> Callable:
    """Decorator: notes on a test how many nodes it needs."""
    def noted(f):
        f.__oneflow_test_case_num_nodes_required__ = num_nodes
        return f
    return noted


def _unless(nodes: int, devices: int, name: str) -> Callable[[], Callable]:
    def decorator():
        import unittest
        there = env.node_size() == nodes and env.device_num() == devices
        return unittest.skipUnless(there, f"only runs when node_num is {nodes} and device_num is {devices}")

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = (f"Decorator: the test is skipped unless there are {nodes} nodes of {devices} devices each, by "
                         "flow.unittest.env.")
    return decorator


skip_unless_1n1d, skip_unless_1n2d, skip_unless_1n4d, skip_unless_2n1d, skip_unless_2n2d, skip_unless_2n4d = (
    _unless(nodes, devices, f"skip_unless_{nodes}n{devices}d") for nodes in (1, 2) for devices in (1, 2, 4))
