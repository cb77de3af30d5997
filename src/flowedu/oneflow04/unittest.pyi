"""Written by `make stubs`: do not edit."""
from collections.abc import Callable
from flowedu.oneflow04 import unittest_env as env

def clear_default_session() -> None: """Discard all jobs, variables, and resource settings."""
def num_nodes_required(num_nodes: int) -> Callable:
    """Return a decorator that stores the number of nodes that a test needs."""
def skip_unless_1n1d():
    """Return a decorator that skips a test unless flow.unittest.env reports 1 nodes of 1 devices each."""
def skip_unless_1n2d():
    """Return a decorator that skips a test unless flow.unittest.env reports 1 nodes of 2 devices each."""
def skip_unless_1n4d():
    """Return a decorator that skips a test unless flow.unittest.env reports 1 nodes of 4 devices each."""
def skip_unless_2n1d():
    """Return a decorator that skips a test unless flow.unittest.env reports 2 nodes of 1 devices each."""
def skip_unless_2n2d():
    """Return a decorator that skips a test unless flow.unittest.env reports 2 nodes of 2 devices each."""
def skip_unless_2n4d():
    """Return a decorator that skips a test unless flow.unittest.env reports 2 nodes of 4 devices each."""
