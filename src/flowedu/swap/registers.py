"""Registers for your own passes, memory planners, and boxing primitives.

    with restored():                                 # after the block, the registers are as before
        register_pass(mine)                          # core/graph/passes.py
        register_planner(mine)
        register_boxing(Primitive("mine", ...))      # core/sbp/boxing/algebra.py
        print(flow.report())                         # lists all of them

Graphs that are already compiled do not change. With FLOWEDU_CHECK_GRAPH=1, the verifier checks passes and
planners when a graph is compiled, and primitives when they are registered.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import flowedu.core.sbp.boxing.primitives as library
from flowedu.core import extensions
from flowedu.core.graph import memory, passes
from flowedu.core.graph.passes import register_pass
from flowedu.core.sbp import choose
from flowedu.core.sbp.boxing.algebra import Primitive, via
from flowedu.core.sbp.tensor import convert, interpreter
from flowedu.diagnostics import verify
from flowedu.distributed import perform
from flowedu.errors import ArgumentError

_primitives: list[Primitive] = []
_PACKAGE = Path(__file__).parents[1]


def register_planner(place: Callable[[Sequence[memory.Buffer]], int]) -> None:
    """Register `place(buffers)` as the memory planner of all graphs and jobs that are compiled later.

    The planner replaces the one that was registered before.

    Args:
        place: a function that sets `offset` of each buffer with `in_arena`, and returns the bytes of the
            arena. See `place` in core/graph/memory.py.

    Raises:
        ArgumentError: `place` is not a function.
    """
    if not callable(place):
        raise ArgumentError("register_planner: not a function", expected="place(buffers), which returns the "
                            "bytes of the arena", got=repr(place),
                            fix="see `place` in core/graph/memory.py")
    extensions.place_buffers = place


def register_boxing(primitive: Primitive, on_rank: Callable[..., perform.Program] | None = None) -> None:
    """Register a boxing primitive. A route uses it if it moves fewer bytes than the others.

    Args:
        primitive: the primitive, with a `kind` that no other primitive has.
        on_rank: function on_rank(hop, rank) that returns the program of one rank, a function
            (comm, part, what) -> part. Default: the library sends each rank the pieces that it needs.

    Raises:
        ArgumentError: not a Primitive, or its kind is registered.
        GraphError: FLOWEDU_CHECK_GRAPH is set, and the primitive changes the value.
    """
    if not isinstance(primitive, Primitive):
        raise ArgumentError("register_boxing: not a primitive", got=repr(primitive),
                            expected="a Primitive of flowedu.core.sbp.boxing",
                            fix="Primitive(kind, label, when, messages, elements, in_ops)")
    kinds = [p.kind for p in (*library.PRIMITIVES, *_primitives)]
    if primitive.kind in kinds:
        raise ArgumentError(f"register_boxing: the kind {primitive.kind!r} is registered",
                            expected=f"another kind than {', '.join(kinds)}", got=repr(primitive.kind),
                            fix="with restored(): ... removes it at the end of the block")
    if verify.level():
        verify.check_primitive(primitive)
    if on_rank is not None:
        perform.PROGRAMS[primitive] = on_rank
    _set_primitives([*_primitives, primitive])


def _set_primitives(primitives: Sequence[Primitive]) -> None:
    """Make `primitives` the registered ones, and discard all routes that are cached."""
    _primitives[:] = primitives
    direct = reduce(or_, (p.boxing for p in primitives), library.DIRECT)
    finished = direct | via(library.between, direct, direct)
    library.BOXING.best = (finished | via(library.partly, direct, finished)).best
    library.route.cache_clear()
    choose._find_choice.cache_clear()
    convert._routes.clear()
    interpreter._plans.clear()


@contextmanager
def restored() -> Iterator[None]:
    """Return a context manager that restores the registers of passes, planners, and primitives at its end."""
    registers: list[Any] = [passes.PASSES, passes.NAMES, passes.PARTS, perform.PROGRAMS]
    contents = [register.copy() for register in registers]
    primitives, best = [*_primitives], library.BOXING.best
    planner = vars(extensions).get("place_buffers")
    try:
        yield
    finally:
        for register, before in zip(registers, contents):
            register.clear()
            register.extend(before) if isinstance(register, list) else register.update(before)
        if _primitives != primitives:
            _set_primitives(primitives)
            library.BOXING.best = best
        vars(extensions).pop("place_buffers", None)
        if planner is not None:
            extensions.place_buffers = planner


def report() -> str:
    """Return the passes, the memory planner, and the boxing primitives that are registered, as text.

    Your own ones are shown with the line of their code. Add them with `register_pass`, `register_planner`,
    and `register_boxing` of `flowedu.swap.registers`.

    Returns:
        A line per register.

    Example:
        >>> print(flow.report().splitlines()[-1])
        boxing   move, reduce, fill, all-reduce
    """
    primitives = [p.kind + _location(p.when) for p in (*library.PRIMITIVES, *_primitives)]
    planner = vars(extensions).get("place_buffers") or memory.place
    rows = {"passes": [verify.name_of(f) + _location(f) for f in passes.PASSES],
            "planner": [verify.name_of(planner) + _location(planner)], "boxing": primitives}
    return "\n".join(f"{kind:8s} {', '.join(names)}" for kind, names in rows.items())


def _location(f: Any) -> str:
    """Return the file and line of a function outside of flowedu, in brackets, or an empty text."""
    code = getattr(f, "__code__", None)
    if code is None or _PACKAGE in Path(code.co_filename).parents:
        return ""
    return f" ({Path(code.co_filename).name}:{code.co_firstlineno})"


__all__ = ["register_boxing", "register_pass", "register_planner", "report", "restored"]
