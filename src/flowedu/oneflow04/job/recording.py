"""Recording of a job's body, so that it can be replayed on other values.

A body runs once, on blobs of the largest shapes. Every call of a front-end function (ops/front.py) in it is
recorded. `replay` runs recorded calls again. To build another graph, it runs them on values of the actual
shapes. Calls that read and decode data are replayed on the data itself, eagerly, before the plan runs.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flowedu.core.graph.ir import GraphValue
from flowedu.core.job.values import flat
from flowedu.core.values.place import Place
from flowedu.errors import FlowError
from flowedu.ops.host import HostOp


class Call(NamedTuple):
    """A recorded call of `f` with `args` and `kwargs` (blobs unwrapped).

    Attributes:
        results: the values that the call returned.
        labels: the names of the results.
        placement: the devices of the call.
        nodes: the nodes that the call appended to the graph.
    """

    f: Callable
    args: tuple
    kwargs: dict
    results: tuple[GraphValue, ...]
    labels: tuple[str, ...]
    placement: Place
    nodes: tuple

    @property
    def is_host(self) -> bool:
        """True if the call runs before the plan, because a plan cannot hold some of its values."""
        return any(isinstance(n.op, HostOp) for n in self.nodes)

    @property
    def only_host(self) -> bool:
        return all(isinstance(n.op, HostOp) for n in self.nodes)

    @property
    def line(self) -> str:
        """The line of the body that made the call."""
        return self.nodes[0].line

    def inputs(self) -> Iterable[GraphValue]:
        return values_in((*self.args, *self.kwargs.values()))


def values_in(x: Any) -> Iterable[GraphValue]:
    """Return the graph values in nested lists and tuples."""
    if isinstance(x, GraphValue):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from values_in(y)


def substitute(x: Any, table: Callable[[GraphValue], Any]) -> Any:
    """Return `x` with each graph value replaced by table(value)."""
    if isinstance(x, GraphValue):
        return table(x)
    if isinstance(x, (list, tuple)) and any(True for _ in values_in(x)):
        return type(x)(substitute(y, table) for y in x)
    return x


def replay(call: Call, table: Callable[[GraphValue], Any]) -> tuple:
    """Run `call` again on table(value) for each value. Return the results in the order of call.results.

    Errors get the name of the op and the line of the body.
    """
    try:
        return flat(call.f(*substitute(call.args, table), **{k: substitute(v, table)
                                                             for k, v in call.kwargs.items()}))
    except FlowError as e:
        e.with_texts(problem=f"{call.labels[0]}: {e.problem}", got=f"{e.got} (sizes of this call)".strip(),
                     at=call.line)
        raise
    except Exception as e:
        e.add_note(f"in {call.labels[0]}, made at {call.line}")
        raise
