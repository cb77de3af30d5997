"""Verifier of graphs and plans, for the development of passes and planners.

    FLOWEDU_CHECK_GRAPH=1    check every graph after each pass, and every plan (graphs.py, plans.py)
    FLOWEDU_CHECK_GRAPH=2    also run the first step with and without each pass, and compare (compare.py)
    graph.check()            do this once, for a graph that has been called; job.check() likewise

core/graph calls `pass_checks`, `checked_plan`, and `make_executor` when it compiles a graph. Calls of a
compiled graph are not affected. Errors include the pass or planner, the node, and the user's line that
created the node.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from flowedu.core.graph.executor import Executor
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import Plan
from flowedu.core.graph.program import Program
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.diagnostics.verify import compare
from flowedu.diagnostics.verify.boxing import check_primitive
from flowedu.diagnostics.verify.graphs import CORRECT, Interface, check_graph
from flowedu.diagnostics.verify.plans import check_plan, name_of
from flowedu.errors import ArgumentError, GraphError

VARIABLE = "FLOWEDU_CHECK_GRAPH"
register_fields(check_level=None)     # the level inside `at_level`


def level() -> int:
    """Return the level of checks: 0 (none), 1 (graphs and plans), or 2 (also results).

    Raises ArgumentError for another value.
    """
    inside = thread_state.check_level
    if inside is not None:
        return inside
    text = os.environ.get(VARIABLE) or "0"
    if text not in ("0", "1", "2"):
        raise ArgumentError(
            f"{VARIABLE}: unknown value",
            expected="0, 1 or 2",
            got=repr(text),
            fix=f"export {VARIABLE}=1",
            at="",
        )
    return int(text)


def at_level(number: int) -> AbstractContextManager:
    """Return a context manager that sets the level of checks for graphs of this thread."""
    return during(check_level=number)


@contextmanager
def pass_checks(call: tuple[Graph, Callable]) -> Iterator[None]:
    """Check a graph after one pass, given as (graph, pass). At level 0, do nothing."""
    (graph, f), number = call, level()
    if not number:
        yield
        return
    who, before = f'pass "{f.__name__}"', Interface(graph)
    if number == 2:
        compare.remember(graph)
    try:
        yield
    except Exception as e:
        raise GraphError(f"{who}: raised {type(e).__name__}", expected="a pass that rewrites graph.nodes",
                         got=str(e), fix=CORRECT, at="") from e
    check_graph(graph, who, before)
    if number == 2:
        compare.remember(graph, who)


def checked_plan(plan: Plan) -> Plan:
    """Check the plan and return it."""
    if level():
        check_plan(plan)
    return plan


def make_executor(plan: Plan, threads: int = 0) -> Executor:
    """Return the executor of a plan on the CPU.

    At level 2 its first run compares the results of all passes.
    """
    return (compare.ComparingExecutor if level() == 2 else Executor)(plan, threads=threads)


def check_compiled(compiled, args: tuple, kwargs: dict) -> None:
    """Check a compiled nn.Graph: run all passes again on the traced graph, and check the plan.

    If arguments are given, also compare the results of one step with and without each pass.
    """
    if compiled.spread is not None:
        for rank, program in compiled.spread.programs.programs.items():
            check_program(program, compiled.spread.lower(rank).graph)
        return
    outputs = dict.fromkeys([*compiled.fetched, *(v for v, _ in compiled.watchers)])
    calls = [(operator.node, operator.inputs) for operator in compiled.operators]
    traced = compare.copy_graph(compiled.graph, calls, list(outputs))
    check_program(compiled.program, traced, compiled.bind(args, kwargs) if args or kwargs else None)


def check_program(program: Program, traced: Graph | None = None, arguments: tuple | None = None) -> None:
    """Check a program's graph and plan.

    Args:
        program: the linked program.
        traced: a copy of its graph before the passes, for a check of each pass; default: None.
        arguments: arguments of a step on the CPU, for a comparison of the results with and without each pass.

    Raises:
        GraphError: a rule is broken.
    """
    compares = arguments is not None and not program.place
    if traced is not None:
        with at_level(2 if compares else 1):
            run_passes(traced, program.off, program.gpu.lower if program.gpu else None)
        if arguments is not None and not program.place:
            compare.compare_stages(program.executor, compare.stages.pop(traced), arguments)
    check_graph(program.graph, "graph")
    plan: Any = program.plan  # a Plan, because the program is linked
    check_plan(plan)
