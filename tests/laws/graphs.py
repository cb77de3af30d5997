"""Runs a bare graph, for laws about plans."""
import numpy as np

from flowedu.core.graph.executor import Executor
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import make_plan


def run_graph(graph, arrays, passes=True, always_parallel=False, off=()):
    """Plan and run a graph that has only inputs; return its outputs as ndarrays."""
    if passes:
        run_passes(graph, off)
    plan = make_plan(graph, {})
    executor = Executor(plan, always_parallel=always_parallel)
    return executor.run(tuple(np.asarray(a, order="C") for a in arrays))


def op_names(graph) -> list[str]:
    """Return the names of the ops of a graph, in order."""
    return [node.op.name for node in graph.nodes]
