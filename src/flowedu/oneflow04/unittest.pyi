"""Written by `make stubs`: do not edit."""
from collections.abc import Callable
from flowedu.oneflow04 import test_env as env

def clear_default_session() -> None: """Discard all jobs, variables, and resource settings."""
def num_nodes_required(num_nodes: int) -> Callable: """Decorator: notes on a test how many nodes it needs."""
def skip_unless_1n1d():
    """Decorator: the test is skipped unless there are 1 nodes of 1 devices each, by flow.unittest.env."""
def skip_unless_1n2d():
    """Decorator: the test is skipped unless there are 1 nodes of 2 devices each, by flow.unittest.env."""
def skip_unless_1n4d():
    """Decorator: the test is skipped unless there are 1 nodes of 4 devices each, by flow.unittest.env."""
def skip_unless_2n1d():
    """Decorator: the test is skipped unless there are 2 nodes of 1 devices each, by flow.unittest.env."""
def skip_unless_2n2d():
    """Decorator: the test is skipped unless there are 2 nodes of 2 devices each, by flow.unittest.env."""
def skip_unless_2n4d():
    """Decorator: the test is skipped unless there are 2 nodes of 4 devices each, by flow.unittest.env."""
