"""The host part of a job: the calls that run in Python before its plan, such as reading and decoding images.

Calls that do not depend on the arguments of a run (readers and the processing of their records) run ahead in
a separate thread, while the plan processes earlier data. The job waits only if no data is ready.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.dispatch import unrecorded
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.layers.context import use_context
from flowedu.errors import FlowError
from flowedu.oneflow04.job.recording import Call, replay
from flowedu.ops.host import HostOp, States


def needed_calls(calls: list[Call]) -> list[Call]:
    """Return the host calls and the calls that compute their inputs, in order."""
    wanted: set[GraphValue] = set()
    found = []
    for call in reversed(calls):
        if call.is_host or any(r in wanted for r in call.results):
            found.append(call)
            wanted.update(call.inputs())
    return found[::-1]


class HostPart:
    """The host calls of one job.

    Attributes:
        calls: all calls of the host part.
        ahead: the calls that do not depend on the caller and can be prefetched.
        rest: the calls that depend on the caller.
    """

    def __init__(self, context, variable: Callable[[str], Tensor], depth: int):
        self.context, self.variable, self.depth = context, variable, depth
        self.calls = needed_calls(context.calls)
        made: set[GraphValue] = set()
        self.ahead: list[Call] = []
        for call in self.calls:
            if call.only_host and made.issuperset(call.inputs()):
                self.ahead.append(call)
                made.update(call.results)
        self.rest = [c for c in self.calls if c not in self.ahead]
        self.states = States(), States()
        self.prefetcher: Any = None         # a Prefetcher, once data was read

    def run(self, feed: dict[GraphValue, Any]) -> dict[GraphValue, Any]:
        """Return the results of all calls for one set of arguments: tensors, TensorBuffers, and TensorLists.
        """
        known = self._read() if self.ahead else {}
        if self.rest:
            known.update({v: from_numpy(a) if isinstance(a, np.ndarray) else a for v, a in feed.items()})
            with self.context.session.lock, use_context(self.context), unrecorded():
                known = _run(self.rest, known, self.states[1], self.variable)
        return known

    def _read(self) -> dict[GraphValue, Any]:
        """Return the results of `ahead`."""
        with self.context.session.lock:
            if not self.depth:
                return _run(self.ahead, {}, self.states[0])
            if self.prefetcher is None:
                # Without self: its thread must not keep the owner alive.
                ahead, states = self.ahead, self.states[0]
                from flowedu.oneflow04.data.prefetch import Prefetcher  # imported only by jobs that read data
                self.prefetcher = Prefetcher(lambda: _run(ahead, {}, states), self.depth)
            prefetcher = self.prefetcher
        return prefetcher.get()

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        if self.prefetcher is not None:
            self.prefetcher.close()
            self.prefetcher = None


def _run(calls: list[Call], known: dict[GraphValue, Any], states: States,
         variable: Any = None) -> dict:
    """Return `known` with the results of the calls. variable(name) returns a variable that a call reads."""
    def table(value: GraphValue):
        if value not in known and value.kind == "variable":
            return variable(value.name)
        return known[value]

    with states:
        for call in calls:
            if call.only_host:
                for node in call.nodes:
                    _run_node(node, known, table)
            else:
                known.update(zip(call.results, replay(call, table)))
    return known


def _run_node(node, known, table) -> None:
    """Run a host node without an interpreter, so that any thread can do it.

    Errors name the line of the body.
    """
    assert isinstance(node.op, HostOp)
    try:
        out = node.op.run(tuple(table(x) for x in node.inputs), node.attrs)
    except FlowError as e:
        e.with_texts(at=node.line)
        raise
    except Exception as e:
        e.add_note(f"in {node.name}, made at {node.line}")
        raise
    known.update(zip(node.outputs, out if isinstance(out, tuple) else (out,)))
