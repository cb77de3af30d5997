"""Batching rules: derive one batched call of an op from its record.

One call is enough in three cases. An elementwise op takes the batch as one more axis. If the axis equation
of an op allows another leading axis, the batch becomes that axis. If an op has an axis that may be split over
devices, the batch is joined to that axis, because an axis that can be split can also be concatenated. In all
other cases the op is called once per element of the batch.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.ops import concat as concat_ops
from flowedu.core.ops import view
from flowedu.core.ops.axes import elementwise as broadcasting
from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import Op
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

# Unsupported calls.
_REFUSALS = (FlowError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError)


def _behind(axis: int) -> int:
    return axis + 1 if axis >= 0 else axis


# {attribute: its value with one more axis in front, of size n}
_SHIFTED: dict[str, Callable] = {
    "begin_norm_axis": lambda value, n: value + 1,
    "axis": lambda value, n: tuple(map(_behind, value)) if isinstance(value, tuple) else _behind(value),
    "perm": lambda value, n: (0, *(p + 1 for p in value)),
    "shape": lambda value, n: (n, *value),
    "start": lambda value, n: (0, *value), "stop": lambda value, n: (n, *value),
    "step": lambda value, n: (1, *value)}


class Batch:
    """Call with a batch of `size`, with the Specs of its inputs without the batch axis."""

    def __init__(self, op: Op, inputs: Sequence, batched: Sequence[bool], attrs: tuple):
        self.op, self.inputs = op, tuple(inputs)
        self.batched, self.attrs = tuple(batched), attrs
        self.size = next(x.shape[0] for x, b in zip(inputs, batched) if b)
        self.specs = [Spec(tuple(x.shape[1:] if b else x.shape), x.dtype) for x, b in zip(inputs, batched)]
        self.outs = op.infer(self.specs, attrs)

    def whole(self) -> list:
        """Return the inputs, and expand those without a batch axis along a new one."""
        return [x if b else view.expand.call((x,), ((self.size, *x.shape),))
                for x, b in zip(self.inputs, self.batched)]


def batched_call(op: Op, inputs: Sequence, batched: Sequence[bool], attrs: tuple) -> tuple:
    """Return the results of an op for each element of the batch, stacked in front."""
    batch = Batch(op, inputs, batched, attrs)
    return next((call() for rule in RULES if (call := rule(batch)) is not None), None) or looped(batch)


def _answers(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


# ---- rules: a function that makes the call, or None
def elementwise(batch: Batch) -> Callable | None:
    """Rule for elementwise ops: the batch is an axis in front of the common shape."""
    op, out = batch.op, batch.outs[0]
    if not op.elementwise or op.variadic:
        return None
    specs = [Spec((batch.size, *(1,) * (out.ndim - s.ndim), *s.shape), s.dtype) if b else s
             for s, b in zip(batch.specs, batch.batched)]
    try:
        if op.equation(batch.specs, batch.attrs) != broadcasting(*batch.specs):
            return None
        op.infer(specs, batch.attrs)
    except _REFUSALS:
        return None

    def call():
        aligned = [x if tuple(x.shape) == s.shape else view.reshape.call((x,), (s.shape,))
                   for x, s in zip(batch.inputs, specs)]
        return _answers(op.call(tuple(aligned), batch.attrs))

    return call


def leading(batch: Batch) -> Callable | None:
    """Rule for ops that allow another axis in front of the batched inputs and the outputs."""
    return _in_front(batch, batch.inputs, batch.batched)


def repeated(batch: Batch) -> Callable | None:
    """Rule for ops that allow another axis in front of all inputs, which repeats unbatched inputs."""
    return _in_front(batch, batch.whole(), (True,) * len(batch.inputs))


def _in_front(batch: Batch, inputs: Sequence, batched: Sequence[bool]) -> Callable | None:
    """Return the call if the equation has one more letter in front, and is otherwise unchanged.
    """
    op, n = batch.op, batch.size
    if op.axes is None:
        return None
    specs = [Spec((n, *s.shape), s.dtype) if b else s for s, b in zip(batch.specs, batched)]
    try:
        attrs = tuple(_SHIFTED[name](value, n) if name in _SHIFTED and value is not None else value
                      for name, value in zip(op.attrs, batch.attrs))
        old, new = (sum(parse(op.equation(some, given), len(specs)), []) for some, given in (
            (batch.specs, batch.attrs), (specs, attrs)))
        outs = op.infer(specs, attrs)
    except _REFUSALS:
        return None
    grown = [Spec((n, *s.shape), s.dtype) for s in batch.outs]
    if [*outs] != grown or not _one_more(old, new, (*batched, *(True,) * len(grown))):
        return None
    return lambda: _answers(op.call(tuple(inputs), attrs))


def _one_more(old: list[str], new: list[str], batched: Sequence[bool]) -> bool:
    """Return True if `new` adds one common letter, which may be split, to the batched old terms.
    """
    names: dict[str, str] = {}
    front = {term[:1] for term, b in zip(new, batched) if b}
    rest = [term[b:] for term, b in zip(new, batched)]
    return len(front) == 1 and front.pop().islower() and all(
        len(a) == len(b) and all(names.setdefault(y, x) == x for x, y in zip(a, b))
        for a, b in zip(old, rest))


def folded(batch: Batch) -> Callable | None:
    """Rule that joins the batch to an axis of all batched inputs and outputs that may be split.
    """
    op = batch.op
    if op.axes is None or not batch.outs:
        return None
    try:
        ins, outs = parse(op.equation(batch.specs, batch.attrs), len(batch.specs))
    except _REFUSALS:
        return None
    needed = [term for term, b in zip(ins, batch.batched) if b] + outs
    for letter in dict.fromkeys(c for c in needed[0] if c.islower()):
        if all(term.count(letter) == 1 for term in needed) and (call := _fold(batch, letter, ins, outs)):
            return call
    return None


def _fold(batch: Batch, letter: str, ins: list[str], outs: list[str]) -> Callable | None:
    op, n = batch.op, batch.size
    grown = [_multiply_axis(s, term, letter, n) for s, term in zip(batch.specs, ins)]
    wanted = [_multiply_axis(s, term, letter, n) for s, term in zip(batch.outs, outs)]
    attrs = batch.attrs
    try:
        if op.localize is not None:
            names = op.bind(grown, attrs, out=wanted[0], full=batch.specs[0].shape,
                            full_out=batch.outs[0].shape)
            changed = op.ask(op.localize, names)
            attrs = tuple(changed.get(name, value) for name, value in zip(op.attrs, attrs))
        if [*op.infer(grown, attrs)] != wanted:
            return None
    except _REFUSALS:
        return None

    def call():
        parts = [_join(x, term.index(letter)) if letter in term else x
                 for x, term in zip(_with(batch, ins, letter), ins)]
        made = _answers(op.call(tuple(parts), attrs))
        return tuple(_apart(y, term.index(letter), n) for y, term in zip(made, outs))

    return call


def _with(batch: Batch, ins: list[str], letter: str) -> list:
    """Return the inputs; those with the letter get the batch as first axis."""
    return [w if letter in term else x for x, w, term in zip(batch.inputs, batch.whole(), ins)]


def _multiply_axis(spec: Spec, term: str, letter: str, n: int) -> Spec:
    return Spec(tuple(k * n if c == letter else k for c, k in zip(term, spec.shape)), spec.dtype)


def _join(x, at: int):
    """Reshape (n, ..., k, ...) to (..., n * k, ...), where k is the axis `at` after the batch."""
    shape = tuple(x.shape[1:])
    x = view.transpose.call((x,), ((*range(1, at + 1), 0, *range(at + 1, x.ndim)),))
    return view.reshape.call((x,), ((*shape[:at], x.shape[at] * shape[at], *shape[at + 1:]),))


def _apart(y, at: int, n: int):
    """Undo `_join`."""
    shape = tuple(y.shape)
    y = view.reshape.call((y,), ((*shape[:at], n, shape[at] // n, *shape[at + 1:]),))
    return view.transpose.call((y,), ((at, *(i for i in range(y.ndim) if i != at)),))


def looped(batch: Batch) -> tuple:
    """Rule that makes a call for each element of the batch."""
    def element(x, b, k):
        if not b:
            return x
        start, stop = (k, *(0,) * (x.ndim - 1)), (k + 1, *x.shape[1:])
        row = concat_ops.slice.call((x,), (start, stop, (1,) * x.ndim))
        return view.reshape.call((row,), (tuple(x.shape[1:]),))

    rows = [_answers(batch.op.call(tuple(element(x, b, k) for x, b in zip(batch.inputs, batch.batched)),
                                   batch.attrs))
            for k in range(batch.size)]
    return tuple(stacked([row[i] for row in rows]) if rows else
                 view.constant.call((), ((0, *s.shape), 0, s.dtype)) for i, s in enumerate(batch.outs))


def stacked(rows: Sequence):
    """Stack values of one shape along a new first axis."""
    rows = tuple(view.reshape.call((r,), ((1, *r.shape),)) for r in rows)
    return concat_ops.concat.call(rows, (0,)) if len(rows) > 1 else rows[0]


RULES = (elementwise, leading, folded, repeated)          # in the order they are tried
