"""Errors of graphs, of the Python types OneFlow raises."""
from __future__ import annotations

from flowedu.errors import FlowError


class GraphError(FlowError, RuntimeError):
    """Wrong use of a graph's life: called before it is built, inputs that changed."""


class GraphAttributeError(FlowError, AttributeError):
    """An attribute that a graph must not have."""
