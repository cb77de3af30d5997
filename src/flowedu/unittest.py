"""flow.unittest: what OneFlow's own tests are derived from."""
from __future__ import annotations

import unittest

from flowedu.job.session import clear_default_session


class TestCase(unittest.TestCase):
    """Every test starts in a session of its own."""

    def setUp(self) -> None:
        clear_default_session()
