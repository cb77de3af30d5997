"""Effects of `build` outside the graph: buffers with new values, and memory shared by two names."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import UnsupportedError


@contextlib.contextmanager
def attributes_kept(tracer, blocks: Iterable) -> Iterator[None]:
    """Return a context in which an assigned buffer (`self.count = self.count + 1`) stays the same tensor.

    Every run writes the new value into that tensor. If build raises an error, the buffers are restored.

    Raises:
        UnsupportedError: the new value has another shape or dtype.
    """
    modules = list({id(b.origin): b for top in blocks for b in top.walk()}.values())
    before = [(b, b.origin._buffers, dict(b.origin._buffers)) for b in modules]
    try:
        with _watch_gradients():
            yield
        for block, table, old in before:
            for key, new in list(table.items()):
                if isinstance(new, Tensor) and new.is_lazy:
                    _keep(tracer, f"{block.path}.{key}", old.get(key), new)
        refuse_gradients(modules)
    finally:
        for _, table, old in before:
            if any(isinstance(t, Tensor) and t.is_lazy for t in table.values()):
                table.clear()
                table.update(old)


def _keep(tracer, path: str, old: Tensor | None, new: Tensor) -> None:
    if old is None or old.spec != new.spec:
        raise UnsupportedError(f"nn.Graph: build gives the buffer {path} another shape or dtype, or its "
                               f"first value",
                               expected="no tensor" if old is None else str(old.spec), got=str(new.spec),
                               fix="register it with its final shape and dtype", at="")
    if new.symbol is not tracer.values.get(id(old)):
        tracer.write(old, new)


_GRADIENT: Any = TensorBase.grad               # the attribute of the class


def _is_lazy(t: Tensor | None) -> bool:
    return t is not None and t.is_lazy


def _refuse_use(p: Parameter, what: str) -> None:
    """Raise UnsupportedError in a build that has called backward(), whose gradients are computed after build.
    """
    tracer = thread_state.tracer
    if tracer is not None and tracer.goal is not None and p.requires_grad:
        raise UnsupportedError(f"nn.Graph: build {what} the gradient of a parameter after backward()",
                               expected="gradients that only the optimizer of the graph uses",
                               got=f"grad of a parameter of shape {tuple(p.shape)}",
                               fix="g, = flow.autograd.grad(loss, [p]) in build; to clip gradients, give the "
                               "optimizer the options clip_grad_max_norm and clip_grad_norm_type; or freeze "
                               "p by requires_grad_(False)")


def _read_gradient(p: Parameter) -> Tensor | None:
    """Return the gradient that backward accumulated, or None."""
    _refuse_use(p, "reads")
    return _GRADIENT.__get__(p)


def _write_gradient(p: Parameter, value: Tensor | None) -> None:
    if value is None:
        _refuse_use(p, "removes")
    _GRADIENT.__set__(p, value)


def _delete_gradient(p: Parameter) -> None:
    _write_gradient(p, None)


_WATCHED: Any = property(_read_gradient, _write_gradient, _delete_gradient)
_lock = threading.Lock()
_builds = 0                                    # number of builds that run now, in all threads


@contextlib.contextmanager
def _watch_gradients() -> Iterator[None]:
    """Return a context in which `grad` of a parameter is refused in a build that has called backward().

    The property exists only during builds, because it is five times slower than the attribute of Tensor.
    """
    global _builds
    with _lock:
        _builds += 1
        Parameter.grad = _WATCHED
    try:
        yield
    finally:
        with _lock:
            _builds -= 1
            if _builds == 0:
                del Parameter.grad


def refuse_gradients(blocks: Iterable) -> None:
    """Raise UnsupportedError if build assigned a value of the graph to `grad` of a parameter or buffer."""
    assigned = [(f"{block.path}.{key}", t) for block in blocks
                for key, t in (*block.origin._parameters.items(), *block.origin._buffers.items())
                if t is not None and _is_lazy(_GRADIENT.__get__(t))]
    for _, t in assigned:
        _GRADIENT.__set__(t, None)
    if assigned:
        raise UnsupportedError(f"nn.Graph: build assigns to the gradient of {assigned[0][0]}",
                               expected="loss.backward()",
                               got="a value of the graph", fix="assign eager tensors to grad outside build",
                               at="")


def check_aliases(tracer) -> None:
    """Raise UnsupportedError if build writes memory in place that the graph reads through another tensor.

    The graph would read the old value there.
    """
    names = {id(v): n for n, v in tracer.graph.variables.items()}
    written = [(names[id(v)], tracer.variables[names[id(v)]]) for v in tracer.written]
    # Tensors grouped by the memory they may share.
    near: dict[int, list[tuple[str, Tensor]]] = {}
    for other, u in tracer.variables.items():
        near.setdefault(u._block_address[0], []).append((other, u))
    for name, t in written:
        for other, u in near[t._block_address[0]]:
            if (other != name and t.shares_block(u) and (t._device
                                                         or np.may_share_memory(t.numpy(), u.numpy()))):
                raise UnsupportedError(f"nn.Graph: build writes {name} in place, and {other} shares its "
                                       f"memory", expected="one tensor for memory that is written", got="two",
                                       fix="use one of the two in build, or make views of it there", at="")
