"""flow.Tensor: attributes, conversions, operators.

core/eager/dispatch.pyx has the C part (data, tape links, + - * / @). Other modules `attach` further
methods, such as the conversions to Python numbers (tensor/attributes.py).
"""
from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.dispatch import TapeNode, TensorBase, connect, slots
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import operate
from flowedu.core.ops.value import make_operators, matmul
from flowedu.core.values import dtype as dt
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.size import Size
from flowedu.errors import tensors as errors

_op = REGISTRY.__getitem__


class LazyGrad:
    """The grad_fn of a lazy tensor, which has only a name."""

    next_functions = ()

    def __init__(self, name: str):
        self._name = name

    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<{self._name}>"


class TensorType(type):
    """Metaclass that defines the call `flow.Tensor(2, 3)`. C code allocates tensors without it."""

    def __call__(cls, *args: object, device: object = None, placement: object = None,
                 sbp: object = None) -> Any:
        return extensions.construct_tensor("Tensor", None, args, device, placement, sbp)


class Tensor(TensorBase, metaclass=TensorType):
    """An n-dimensional array with automatic differentiation. Make one with `flow.tensor(data)`.

    Inside nn.Graph.build tensors are lazy: they have a shape and a dtype but no values, and each op
    on a lazy tensor adds a node to the graph.

    Args:
        *args: sizes of an uninitialized tensor, or one list, array, or tensor of values.
        device: device of a local tensor; default: the CPU.
        placement, sbp: devices and layout of a global tensor; default: None, a local tensor.
    """

    __slots__ = ("__dict__",)            # attributes of the user; Python allocates it on first use
    __array_priority__ = 1000

    # ---- attributes
    @property
    def requires_grad(self) -> bool:
        """True if backward computes the gradient of this tensor. Can be set on floating leaves."""
        if self.link is not None:
            self.refresh_view()
        return self.tracked

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if self.requires_grad and not self.is_leaf:
            if on:
                return
            raise errors.not_a_leaf()
        if on and not self._can_track:
            raise errors.not_floating(self.dtype)
        self.tracked = builtins.bool(on)
        ambient.changes += type(self) is not Tensor       # a parameter

    @property
    def is_leaf(self) -> bool:
        """True if no recorded op computed this tensor."""
        if self.link is not None:
            self.refresh_view()
        return self.node is None and (self.is_eager or self.rare.grad_name is None)

    @property
    def grad_fn(self) -> TapeNode | LazyGrad | None:
        """The recorded call that computed this tensor; None for leaves."""
        if self.link is not None:
            self.refresh_view()
        if self.node is None and self.is_lazy and self.rare.grad_name is not None and self.tracked:
            return LazyGrad(self.rare.grad_name)
        return self.node

    def numel(self) -> int:
        """Return the number of elements."""
        return self._numel

    is_global = property(lambda self: self.global_layout is not None, doc="True if global.")

    # ---- values
    def _require_data(self, what: str) -> None:
        if self.is_lazy:
            raise errors.lazy_access(what, self.spec)

    def numpy(self) -> np.ndarray:
        """Return an ndarray that shares the memory. Calling `detach()` first is not needed."""
        self._require_data("numpy()")
        self.uniform = False                              # the array may be written
        if self.global_layout is not None:
            return slots.logical(self).numpy()
        if self._device:
            raise errors.on_gpu(self._device)
        if self.dtype.numpy is None:
            return extensions.bfloat16_array(self)
        return np.asarray(memoryview(self))

    def peek(self) -> np.ndarray:
        """Return an ndarray for reading only, with bfloat16 converted to float32."""
        if self.dtype is dt.bfloat16:
            return _op("cast")(self.detach(), dtype=dt.float32).peek()
        plain = self.global_layout is None and self.has_memory
        return np.asarray(memoryview(self._on_host())) if plain else self.numpy()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.is_lazy:
            raise errors.lazy_item()
        if self._numel != 1:
            raise errors.item_of_many(self._numel, self.shape)
        a = self if self.dtype.numpy is not None else _op("cast")(self, dtype=dt.float32)
        return a._on_host().numpy().reshape(-1)[0].item()

    def tolist(self) -> Any:
        """Return the elements as nested lists, or the number of a 0-dim tensor."""
        self._require_data("tolist()")
        a = self if self.dtype.numpy is not None else _op("cast")(self, dtype=dt.float32)
        return a._on_host().numpy().tolist()

    def __repr__(self) -> str:
        return f"tensor(..., size={tuple(self.shape)}, dtype={self.dtype!r})"

    # ---- operators that the C part does not have
    __pow__, __rpow__ = make_operators("pow")
    __mod__, __rmod__ = make_operators("mod")
    __floordiv__, __rfloordiv__ = make_operators("floordiv")
    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        return _op("neg")(self)

    def __abs__(self) -> Tensor:
        return _op("abs")(self)


def attach(cls: type, methods: dict) -> None:
    """Set attributes of a class.

    Args:
        cls, methods: class, and {name: function, property, or other descriptor}.
    """
    for name, value in methods.items():
        setattr(cls, name, value)


connect(Tensor=Tensor, Size=Size, mixed=operate, mixed_matmul=matmul,
        **{name: _op(name) for name in ("add", "sub", "mul", "div", "matmul")})
__all__ = ["Size", "Tensor", "attach"]
