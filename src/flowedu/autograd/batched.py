"""vmap: turns a function of one sample into a function of a batch.

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(weight, xs, ys)

The function runs once, and an interpreter executes its calls for the batch. Inside the function, tensors are
lazy: they have the shape of one sample and represent a tensor with the batch as its first axis. The op's
record determines the batched form of a call (batching.py).
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

from flowedu.autograd.batching import batched_call
from flowedu.autograd.trees import leaves, rebuilt, spread
from flowedu.core.eager.dispatch import call_seeded, is_grad_enabled, lazy_tensor
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import concat as concat_ops
from flowedu.core.ops import view
from flowedu.core.ops.call import call_below, current_interpreter, interpreter
from flowedu.core.ops.define import Op
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, CallError, LazyTensorError, UnsupportedError

RANDOM = ("error", "different", "same")


class Stack(NamedTuple):
    """The batched tensor that a lazy tensor of `level` represents, with the batch as its first axis."""

    whole: Tensor
    level: Batched


class Batched:
    """Interpreter of one vmap call, which is one level of nested vmap calls.

    It executes calls with tensors of its level for the batch, and passes other calls on.
    """

    def __init__(self, size: int, randomness: str):
        self.size, self.randomness = size, randomness

    def lazy(self, whole: Tensor, wants: bool = False) -> Tensor:
        """Return a lazy tensor for one sample of `whole`, whose first axis is the batch."""
        return lazy_tensor(Stack(whole, self), tuple(whole.shape[1:]), whole.dtype,
                           wants and whole.dtype.is_floating_point, "vmap" if wants else "")

    def whole(self, x: Tensor) -> Tensor | None:
        """Return the batched tensor of a lazy tensor of this level; None for other tensors."""
        x.refresh_view()
        found = x.symbol
        return found.whole if isinstance(found, Stack) and found.level is self else None

    def run(self, op: Op, inputs: tuple, attrs: tuple):
        stacks = [self.whole(x) if isinstance(x, Tensor) else None for x in inputs]
        batched = [s is not None for s in stacks]
        if op.random:
            return self._run_random(op, inputs, stacks, attrs)
        if not any(batched):
            return call_below(op, inputs, attrs)
        if op.mutates or op.effect:
            raise UnsupportedError(f"vmap: {op.name} has an effect beside its result",
                                   expected="ops that only compute",
                                   got=op.signature, fix="call it outside of the function")
        wants = is_grad_enabled() and any(x.requires_grad for x in inputs) and bool(op.rules or op.any_rule)
        return self._answer(self._below(op, tuple(x if s is None else s for x, s in zip(inputs, stacks)),
                                        batched, attrs),
                            wants)

    def _below(self, op: Op, inputs: tuple, batched: list[bool], attrs: tuple) -> tuple:
        with below():
            return batched_call(op, inputs, batched, attrs)

    def _answer(self, results: tuple, wants: bool = False):
        made = tuple([self.lazy(y, wants) for y in results])
        return made[0] if len(made) == 1 else made

    def _run_random(self, op: Op, inputs: tuple, stacks: list, attrs: tuple):
        """Run a call that draws random numbers; it reads only the shapes of its inputs."""
        if self.randomness == "error":
            raise UnsupportedError(f"vmap: {op.name} draws random numbers, and randomness is 'error'",
                                   got="'error'",
                                   expected="'different' numbers for each sample, or the 'same' for all",
                                   fix="vmap(f, randomness='different')")
        same = self.randomness == "same"
        with below():
            sizes = [x._sizes() if same else (self.size, *x._sizes()) for x in inputs]
            inputs = tuple(view.constant.call((), (shape, 0, x.dtype)) for x, shape in zip(inputs, sizes))
            if "shape" in op.attr_index and not same:
                at = op.attr_index["shape"]
                attrs = (*attrs[:at], (self.size, *attrs[at]), *attrs[at + 1:])
            y = op.call(inputs, attrs) if current_interpreter() is not None else call_seeded(
                op, inputs, (*attrs[:-2], 0, 0), *attrs[-2:])
        return y if same else self.lazy(y)


@contextmanager
def below():
    """Return a context in which calls go to the interpreter below the current one."""
    stack = thread_state.interpreters
    thread_state.interpreters = stack[:-1]
    try:
        yield
    finally:
        thread_state.interpreters = stack


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable:
    """Return a function that applies `func` to each sample of a batch at once.

    Keyword arguments are shared by all samples. `func` cannot read the values of its tensors, so `if x > 0`
    and x.item() raise an error.

    Args:
        func: function of tensors (or nested tuples, lists, and dicts of them) without the batch axis.
        in_dims: batch axis of each argument: an int, None for an argument that all samples share, or nested
            like the arguments.
        out_dims: position of the batch axis in each result; None for a result without one.
        randomness: "different" draws other random numbers for each sample, "same" draws them once, and
            "error" raises an error for random ops.
        chunk_size: number of samples at a time; default: all.

    Raises:
        ArgumentError: in_dims or out_dims do not match the arguments or results.
        LazyTensorError: `func` reads a value.

    Example:
        >>> flow.vmap(lambda x: x.sum())(flow.ones(2, 3))
        tensor([3., 3.], dtype=flowedu.float32)
    """
    if randomness not in RANDOM:
        raise ArgumentError("vmap: no such randomness", expected=", ".join(map(repr, RANDOM)),
                            got=repr(randomness), fix="randomness='different'")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ArgumentError("vmap: chunk_size should be None or greater than 0",
                            expected="a number of samples", got=repr(chunk_size), fix="chunk_size=64, say")

    @functools.wraps(func)
    def over_batch(*args, **kwargs):
        values = leaves(args)
        dims = spread(tuple(in_dims) if isinstance(in_dims, (tuple, list)) else in_dims, args)
        if dims is None:
            raise ArgumentError("vmap: in_dims is not compatible with the structure of inputs",
                                got=repr(in_dims)[:80],
                                expected="a number, or one for each argument",
                                fix="in_dims=0, or nested as the arguments")
        size = _size(values, dims)
        fronts = [x if d is None else _front(x, d) for x, d in zip(values, dims)]
        if chunk_size is None or chunk_size >= size:
            return _move_batch_axes(*_run(func, args, fronts, dims, kwargs, size, randomness), size, out_dims)
        runs = []
        for k in range(0, size, chunk_size):
            n = min(chunk_size, size - k)
            some = [x if d is None else x.narrow(0, k, n) for x, d in zip(fronts, dims)]
            runs.append((_run(func, args, some, dims, kwargs, n, randomness), n))
        columns = zip(*[[(y, b, n) for y, b in made] for (_, made), n in runs])
        joined = [(concat_ops.concat.call(tuple(_repeated(y, n, b) for y, b, n in column), (0,)), True)
                  if column[0][1] else column[0][:2] for column in columns]
        return _move_batch_axes(runs[0][0][0], joined, size, out_dims)

    return over_batch


def _size(values: list, dims: list) -> int:
    """Return the number of samples."""
    sizes: dict[int, int] = {}
    for x, d in zip(values, dims):
        if d is None:
            continue
        if not isinstance(x, Tensor) or not isinstance(d, int):
            raise ArgumentError("vmap: only tensors have an axis of the batch",
                                expected="in_dim None for what is none",
                                got=f"in_dim {d!r} for {type(x).__name__}", fix="in_dims=(0, None), say")
        if not -x.ndim <= d < x.ndim:
            raise ArgumentError("vmap: in_dim is out of range", expected=f"an axis of {tuple(x.shape)}",
                                got=str(d), fix="None for a tensor that all samples share")
        sizes.setdefault(x.shape[d], d)
    if len(sizes) != 1:
        what = ("at least one tensor with an axis of the batch" if not sizes
                else "all tensors to have as many samples")
        raise ArgumentError(f"vmap: expected {what}", got="none" if not sizes else f"sizes {sorted(sizes)}",
                            expected="one size of the batch",
                            fix="in_dims says which axis of each argument is the batch's")
    return next(iter(sizes))


def _front(x: Tensor, d: int) -> Tensor:
    d %= x.ndim
    return x if d == 0 else view.transpose.call((x,), ((d, *(i for i in range(x.ndim) if i != d)),))


def _run(func: Callable, args: tuple, fronts: list, dims: list, kwargs: dict, size: int, randomness: str):
    """Return (the result as a tree, [(leaf, True if it has the batch in front)])."""
    level = Batched(size, randomness)
    with interpreter(level):
        inputs = rebuilt(args, [x if d is None else level.lazy(x, x.requires_grad)
                                for x, d in zip(fronts, dims)])
        try:
            result = func(*inputs, **kwargs)
        except LazyTensorError as e:
            raise LazyTensorError("vmap: the function asks a tensor for its numbers, which differ from "
                                  "sample to sample",
                                  expected="ops, and sizes", got=e.problem,
                                  fix="flow.where(mask, x, y) instead of if; what needs no sample, outside "
                                  "of the function") from e
        found = []
        for y in leaves(result):
            if not isinstance(y, Tensor):
                raise CallError(f"vmap: the function must return tensors, got type {type(y).__name__}",
                                expected="tensors, or nested tuples, lists and dicts of them",
                                got=repr(y)[:60], fix="return tensors")
            whole = level.whole(y)
            found.append((y, False) if whole is None else (whole, True))
    return result, found


def _repeated(y: Tensor, size: int, batched: bool) -> Tensor:
    return y if batched else view.expand.call((y,), ((size, *y.shape),))


def _move_batch_axes(tree: Any, found: list, size: int, out_dims: Any):
    dims = spread(tuple(out_dims) if isinstance(out_dims, (tuple, list)) and isinstance(tree, (tuple, list))
                  else out_dims, tree)
    if dims is None:
        raise ArgumentError("vmap: out_dims is not compatible with the structure of outputs",
                            got=repr(out_dims)[:80],
                            expected="a number, or one for each result", fix="out_dims=0")
    return rebuilt(tree, [_out(y, batched, size, d) for (y, batched), d in zip(found, dims)])


def _out(y: Tensor, batched: bool, size: int, d: int | None) -> Tensor:
    if d is None:
        if batched:
            raise ArgumentError("vmap: a result differs from sample to sample, but its out_dim is None",
                                expected="an axis for the batch", got="None", fix="out_dims=0")
        return y
    y = _repeated(y, size, batched)
    if not -y.ndim <= d < y.ndim:
        raise ArgumentError("vmap: out_dim is out of range", expected=f"an axis of {tuple(y.shape)}",
                            got=str(d), fix="out_dims=0")
    d %= y.ndim
    return y if d == 0 else view.transpose.call((y,), ((*range(1, d + 1), 0, *range(d + 1, y.ndim)),))
