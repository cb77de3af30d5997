"""Host ops: records whose values are not plain arrays, or whose result size is known only at run time.

Kernels and plans cannot hold a TensorBuffer, a batch of records read from a file, or an image decoded from
its bytes. The record therefore has a Python function (`host=`) instead of a kernel. In a job these ops run
before the compiled plan, which takes their results as inputs. They have no gradient.

    coin = define_host("coin_flip(*, batch_size, probability=0.5, seed=None) -> y", host=flip,
                       shape=lambda batch_size: (batch_size,), dtype=lambda: int8,
                       state=lambda seed: np.random.default_rng(seed))

Functions receive arguments by parameter name, as in define.py. The parameters of `host` named like inputs
receive their values: an ndarray, or the object (TensorBuffer, ...) that another host op returned. `state` is
the result of the record's `state` function, called when the program first reaches this call. A source stores
its position in a file there.
"""
from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.record import Effects, Meaning, Signature, parameters, read
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.errors import ArgumentError, DTypeError

register_fields(states=None)                     # states of host ops; None: the eager ones

HOST: dict[str, HostOp] = {}
_follow_seed: weakref.WeakSet[States] = weakref.WeakSet()


class States:
    """The state of every host call of one program, told apart by the order in which the calls are reached.

    `with states:` the calls inside are numbered from 0: the same program run again meets its own states.

    Args:
        eager: whether random numbers are drawn anew after flow.random.seed (a compiled job keeps the seeds it
            was made with).
    """

    count: Any = None                  # numbers the calls of a run; None outside `with`

    def __init__(self, eager: bool = False) -> None:
        self.held: dict = {}
        if eager:
            _follow_seed.add(self)

    def __enter__(self) -> States:
        self.count = itertools.count()
        self.outer, thread_state.states = thread_state.states, self
        return self

    def __exit__(self, *exc: object) -> None:
        thread_state.states = self.outer

    def of(self, op: HostOp, attrs: tuple) -> Any:
        """Return the state of this call, created on first use."""
        key = next(self.count) if self.count is not None else (op.name, attrs)
        if key not in self.held:
            self.held[key] = op.ask(op.state, dict(zip(op.attrs, attrs)))
        return self.held[key]


_eager = States(eager=True)         # outside programs the key of a call is its op and attributes


def forget_states() -> None:
    """Let eager sources start over."""
    _eager.held.clear()


def forget_generators() -> None:
    """Reset eager random ops to their seeds or the global one. Readers keep their position in the files."""
    for states in list(_follow_seed):
        for key in [k for k, state in states.held.items() if isinstance(state, np.random.Generator)]:
            del states.held[key]


class HostOp(Op):
    """A host op. Called on values it runs at once; while a graph is being built it becomes a node.

    Fields in addition to those of Op: host; state; dynamic, the outputs whose shape is an upper bound; lists,
    the outputs that are TensorLists.
    """

    host: Callable
    state: Callable | None

    def __init__(self, signature: Signature, meaning: Meaning, host: Callable, *,
                 state: Callable | None = None, dynamic: Sequence[str] = (), lists: Sequence[str] = (),
                 doc: str = "") -> None:
        super().__init__(signature, meaning, Effects(random=state is not None), doc=doc)
        self.__dict__.update(host=host, state=state, dynamic=tuple(dynamic), lists=tuple(lists))
        self.params.update({f: parameters(f) for f in (host, state) if f is not None})

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        return self.call_mixed(inputs, self.complete(attrs))

    def call(self, inputs: tuple, attrs: tuple) -> Any:
        interpreter = current_interpreter()
        if interpreter is not None:
            return interpreter.run(self, inputs, attrs)
        return self.run(inputs, attrs)

    def call_mixed(self, inputs: tuple, attrs: tuple) -> Any:
        for x in inputs:
            if hasattr(x, "call_op"):
                return x.call_op(self, inputs, attrs)
        return self.call(inputs, attrs)

    def run(self, inputs: tuple, attrs: tuple) -> Any:
        """Run now. Tensors come in as arrays, and arrays go out as tensors."""
        self._count(inputs)
        values = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
        specs = [spec_of(v, self.name) for v in values]
        names = dict(zip(self.attrs, attrs))
        names.update({self.inputs[0]: tuple(values)} if self.variadic else dict(zip(self.inputs, values)))
        if self.check is not None:
            self.ask(self.check, {**names, **self.bind(specs, ())})
        if self.state is not None:
            names["state"] = (thread_state.states or _eager).of(self, attrs)
        out = self.ask(self.host, names)
        wrap = lambda y: from_numpy(np.asarray(y, order="C")) if isinstance(y, np.ndarray) else y
        return tuple(map(wrap, out)) if isinstance(out, tuple) else wrap(out)


def anew(host: Callable) -> Callable:
    """`host` marked as one whose arrays are new at every call: nothing else refers to them, so they can be given away."""
    host.anew = True  # type: ignore[attr-defined]  # an attribute of a function
    return host


def spec_of(value: Any, what: str) -> Spec:
    """Return the Spec of an array, or of an object that has one.

    Raises DTypeError, with a message that starts with `what`, for anything else.
    """
    if isinstance(value, np.ndarray):
        return Spec(value.shape, as_dtype(value.dtype))
    spec = getattr(value, "spec", None)
    if not isinstance(spec, Spec):
        raise DTypeError(f"{what}: an input is a {type(value).__name__}",
                         expected="a tensor, a TensorBuffer, or what another op gave", got=repr(value)[:80],
                         fix="flow.tensor(x) makes a tensor of numbers")
    return spec


def define_host(signature: str, *, host: Callable, shape: Callable, dtype: Callable,
                check: Callable | None = None,
                state: Callable | None = None, dynamic: Sequence[str] = (), lists: Sequence[str] = (),
                doc: str = "") -> HostOp:
    """Make a host op and enter it in HOST.

    Args:
        signature: as for `define`: "name(a, b, *, attr=0) -> y".
        host: the meaning, on values; returns one, or a tuple.
        shape, dtype: of the outputs, from the inputs' Specs; tuples when there are several outputs. The dtype
            of a TensorBuffer is flow.tensor_buffer, that of records flow.record.
        check: raises a FlowError when the inputs' Specs or the attributes do not fit.
        state: makes what the call keeps between runs.
        dynamic: outputs that may be smaller at run time than `shape` says (where there is an attribute
            `dynamic_out`, only when it is true).
        lists: outputs that are TensorLists (their dtype is that of the arrays).
    """
    op = HostOp(read(signature), Meaning(None, shape=shape, dtype=dtype, check=check), host, state=state,
                dynamic=dynamic, lists=lists, doc=doc)
    if op.name in HOST:
        raise ArgumentError(f"define_host: an op named {op.name!r} exists already", expected="a new name",
                            got=op.name, fix="choose another name")
    HOST[op.name] = op
    return op
