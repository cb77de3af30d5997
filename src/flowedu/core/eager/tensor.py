"""flow.Tensor: attributes, conversions, operators.

core/eager/dispatch.pyx has the C part (data, tape links, + - * / @). Others `attach` methods.
"""
from __future__ import annotations

import builtins

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.dispatch import TensorBase, connect, slots
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import operate
from flowedu.core.ops.value import matmul
from flowedu.core.values import dtype as dt
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.size import Size
from flowedu.errors import DTypeError, GradientError, LazyTensorError, ShapeError

_op = REGISTRY.__getitem__


def _make_operators(name: str) -> tuple:
    """Return the methods for `x op y` and, reflected, `y op x`."""
    op = _op(name)
    return lambda self, other: operate(op, self, other), lambda self, other: operate(op, other, self)


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
    """Metaclass: a call makes a tensor, `flow.Tensor(2, 3)`; C code allocates without a call."""

    def __call__(cls, *args, device=None, placement=None, sbp=None):
        return extensions.construct_tensor("Tensor", None, args, device, placement, sbp)


class Tensor(TensorBase, metaclass=TensorType):
    """An n-dimensional array with automatic differentiation. Make one with `flow.tensor(data)`.

    Inside nn.Graph.build tensors are lazy: they have a shape and a dtype but no values, and each op
    on a lazy tensor adds a node to the graph.
    """

    __slots__ = ()
    __array_priority__ = 1000

    # ---- attributes
    @property
    def requires_grad(self) -> bool:
        """Whether backward computes its gradient. May be set on leaves of floating dtype."""
        if self.link is not None:
            self.refresh_view()
        return self.tracked

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if self.requires_grad and not self.is_leaf:
            if on:
                return
            raise GradientError("you can only change requires_grad flags of leaf variables", fix="use .detach() first")
        if on and not self._can_track:
            raise GradientError("only Tensors of floating point can require gradients", got=repr(self.dtype),
                                fix="make it of a floating dtype: x.float()")
        self.tracked = builtins.bool(on)
        ambient.changes += type(self) is not Tensor       # a parameter

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is not the output of a recorded op."""
        if self.link is not None:
            self.refresh_view()
        return self.node is None and (self.is_eager or self.rare.grad_name is None)

    @property
    def grad_fn(self):
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
            raise LazyTensorError(f"tensor.{what} is not allowed to be called in nn.Graph.build(*args) or be called by "
                                  "lazy tensor.", expected="an eager tensor", got=f"a lazy {self.spec}",
                                  fix="return it from build() and look at what the graph's call returns")

    def numpy(self) -> np.ndarray:
        """Return an ndarray that shares the memory; no `detach()` is needed before."""
        self._require_data("numpy()")
        self.uniform = False                              # the array may be written
        if self.global_layout is not None:
            return slots.logical(self).numpy()
        if self._device:
            raise DTypeError(f"numpy: can't convert cuda:{self._device - 1} device type tensor to numpy. Use Tensor.cpu() "
                             "to copy the tensor to host memory first", expected="a tensor on the CPU",
                             got=f"cuda:{self._device - 1}", fix="x.cpu().numpy()")
        if self.dtype.numpy is None:
            return extensions.bfloat16_array(self)
        return np.asarray(memoryview(self))

    def peek(self) -> np.ndarray:
        """Return numpy() for reading only; bfloat16 is converted to float32."""
        if self.dtype is dt.bfloat16:
            return _op("cast")(self.detach(), dtype=dt.float32).peek()
        plain = self.global_layout is None and self.has_memory
        return np.asarray(memoryview(self._on_host())) if plain else self.numpy()

    def item(self):
        """Return the only element as a Python number."""
        if self.is_lazy:
            raise LazyTensorError("item: Only eager scalar tensor support GetItem.", got="a lazy tensor",
                                  expected="an eager tensor", fix="return it from build() and call item() on the result")
        if self._numel != 1:
            raise ShapeError("item: can only convert a tensor of size 1 to a Python scalar", expected="one element",
                             got=f"{self._numel} elements, shape {tuple(self.shape)}",
                             fix="x.tolist() for all, x[0].item() for one, x.sum().item() for their sum")
        a = self if self.dtype.numpy is not None else _op("cast")(self, dtype=dt.float32)
        return a._on_host().numpy().reshape(-1)[0].item()

    def tolist(self):
        """Return the elements as nested lists, or the number of a 0-dim tensor."""
        self._require_data("tolist()")
        a = self if self.dtype.numpy is not None else _op("cast")(self, dtype=dt.float32)
        return a._on_host().numpy().tolist()

    def __float__(self):
        self._require_data("__float__()")
        return float(self.item())

    def __int__(self):
        self._require_data("__int__()")
        return int(self.item())

    def __index__(self):
        self._require_data("__index__()")
        if self.dtype.is_floating_point or self._numel != 1:
            raise DTypeError("only integer tensors of a single element can be converted to an index",
                             got=f"{self.dtype.name}{list(self.shape)}")
        return int(self.item())

    def __bool__(self):
        self._require_data("__bool__()")
        if self._numel != 1:
            raise ShapeError("bool value of Tensor with more than one value is ambiguous" if self._numel else
                             "bool value of Tensor with no values is ambiguous", got=f"shape {tuple(self.shape)}",
                             fix="x.any() or x.all()")
        return builtins.bool(self.item())

    def __len__(self):
        if not self.ndim:
            raise DTypeError("len() of a 0-d tensor", expected="one axis or more", got="no axis", fix="x.numel() is 1")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"tensor(..., size={tuple(self.shape)}, dtype={self.dtype!r})"  # see tensor/printing.py

    # ---- operators that the C part does not have
    __pow__, __rpow__ = _make_operators("pow")
    __mod__, __rmod__ = _make_operators("mod")
    __floordiv__, __rfloordiv__ = _make_operators("floordiv")
    __hash__ = object.__hash__

    def __neg__(self):
        return _op("neg")(self)

    def __abs__(self):
        return _op("abs")(self)

    def __iter__(self):
        if not self.ndim:
            raise DTypeError("iteration over a 0-d tensor", expected="at least one axis", got="shape ()",
                             fix="x.item() is its number; x.reshape(1) has an axis")
        return (self[i] for i in range(len(self)))


def attach(cls: type, methods: dict) -> None:
    """Set attributes of `cls`. methods: {name: function, property, or other descriptor}."""
    for name, value in methods.items():
        setattr(cls, name, value)


connect(Tensor=Tensor, Size=Size, mixed=operate, mixed_matmul=matmul,
        **{name: _op(name) for name in ("add", "sub", "mul", "div", "matmul")})
__all__ = ["Size", "Tensor", "attach"]
