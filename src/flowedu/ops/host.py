"""Host ops: records whose values are not plain arrays, or whose result size is known only at run time.

Kernels and plans cannot hold a TensorBuffer, a batch of records read from a file, or an image decoded from
its bytes. The record therefore has a Python function (`host=`) instead of a kernel. In a job these ops run
before the compiled plan, which takes their results as inputs. They have no gradient.

    coin = define_host("coin_flip(*, batch_size, probability=0.5, seed=None) -> y", host=flip,
                       shape=lambda batch_size: (batch_size,), dtype=lambda: int8,
                       state=lambda seed: np.random.default_rng(seed))

The parameter names of these functions select their arguments, as in define.py. A parameter of `host` with the
name of an input receives its value: an ndarray, or the object (TensorBuffer, ...) that another host op
returned. The parameter `state` receives the result of the record's `state` function, which is called when the
program first reaches this call. A data source, for example, stores its position in a file in its state.
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
from flowedu.errors.ops import wrong_number_of_inputs

register_fields(states=None)                     # states of host ops; None: the eager ones

HOST: dict[str, HostOp] = {}
_follow_seed: weakref.WeakSet[States] = weakref.WeakSet()


class States:
    """States of all host op calls of one program, identified by the order of the calls.

    `with states:` numbers the calls inside the block from 0, so that each call finds its state again when the
    program runs again.

    Args:
        eager: True if flow.random.seed resets the random generators. A compiled job keeps its initial seeds.
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
    """Discard the states of eager host ops, so that data sources start from the beginning."""
    _eager.held.clear()


def forget_generators() -> None:
    """Reset eager random ops to their own or the global seed. Readers keep their position in files."""
    for states in list(_follow_seed):
        for key in [k for k, state in states.held.items() if isinstance(state, np.random.Generator)]:
            del states.held[key]


class HostOp(Op):
    """Op that runs on the host. A call with values runs at once; in a graph being built it becomes a node.

    Fields in addition to those of Op: host; state; dynamic, the outputs whose shape is an upper bound; lists,
    the outputs that are TensorLists.
    """

    host: Callable
    state: Callable | Any
    dynamic: tuple[str, ...]
    lists: tuple[str, ...]

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
        """Run the op. Tensors are passed to `host` as arrays, and its arrays are returned as tensors."""
        if not self.variadic and len(inputs) != len(self.inputs):
            raise wrong_number_of_inputs(self.name, self.signature, inputs, self.inputs)
        values = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
        specs = [spec_of(v, self.name) for v in values]
        names = dict(zip(self.attrs, attrs))
        names.update({self.inputs[0]: tuple(values)} if self.variadic else dict(zip(self.inputs, values)))
        if self.check is not None:
            self.ask(self.check, {**names, **self.bind(specs, ())})
        if self.state is not None:
            names["state"] = (thread_state.states or _eager).of(self, attrs)
        out = self.ask(self.host, names)
        return tuple(map(_wrap, out)) if isinstance(out, tuple) else _wrap(out)


def _wrap(y: Any) -> Any:
    """Return an array as a tensor, and other values as they are."""
    return from_numpy(np.asarray(y, order="C")) if isinstance(y, np.ndarray) else y


def anew(host: Callable) -> Callable:
    """Mark `host` as a function whose results are new arrays, so that callers may reuse their memory."""
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
    """Define a host op and add it to HOST.

    Args:
        signature: as for `define`, such as "name(a, b, *, attr=0) -> y".
        host: function of the input values that returns the output value, or a tuple of them.
        shape, dtype: functions of the inputs' Specs that return the shape and the dtype of the output, or
            tuples of them. The dtype of a TensorBuffer is flow.tensor_buffer, that of records flow.record.
        check: function that raises a FlowError if the inputs' Specs or the attributes are invalid.
        state: function that creates the object that a call keeps between runs.
        dynamic: outputs that may be smaller at run time than `shape` returns. If the op has an attribute
            `dynamic_out`, it must also be True.
        lists: outputs that are TensorLists (their dtype is that of the arrays).
    """
    op = HostOp(read(signature), Meaning(None, shape=shape, dtype=dtype, check=check), host, state=state,
                dynamic=dynamic, lists=lists, doc=doc)
    if op.name in HOST:
        raise ArgumentError(f"define_host: an op named {op.name!r} exists already", expected="a new name",
                            got=op.name, fix="choose another name")
    HOST[op.name] = op
    return op
