"""flow.unittest: what OneFlow's own tests are derived from. Python's unittest is imported when it is asked for."""
from __future__ import annotations

from flowedu.core.job.session import clear_default_session


def __getattr__(name: str) -> type:
    if name != "TestCase":
        raise AttributeError(f"module 'flowedu.unittest' has no attribute {name!r}")
    import unittest

    class TestCase(unittest.TestCase):
        """Every test starts in a session of its own."""

        def setUp(self) -> None:
            clear_default_session()

    globals()["TestCase"] = TestCase
    return TestCase
