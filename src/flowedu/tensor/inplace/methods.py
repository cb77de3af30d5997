"""In-place methods such as `exp_`, which write the result of the method without `_` into the tensor."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import set_history, take_value
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import scalar
from flowedu.core.values.dtype import FLOATS
from flowedu.errors import CallError, MissingAttributeError, ShapeError
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.construction import random
from flowedu.tensor.construction.creation import from_numpy
from flowedu.tensor.global_tensors.functions import shared_generator, to_global
from flowedu.tensor.gradients.grad_mode import no_grad
from flowedu.tensor.inplace.history import arithmetic, compute_into, write_into
from flowedu.tensor.inplace.writing import check_writable, set_layout, try_into, twin

# Single ops, computed in x's memory if that is safe (writing.pyx).
_UNARY = ("floor ceil trunc abs neg exp expm1 log log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh "
          "asin acos atan asinh acosh atanh sigmoid relu square erf erfc sign").split()
# Everything else is computed in new memory and copied.
_OTHERS = """round log2 log10 frac erfinv lgamma digamma exp2 logit pow remainder fmod floor_divide clamp
    clamp_min clamp_max clip masked_fill masked_scatter scatter scatter_add scatter_reduce index_add
    index_fill index_copy index_put index_reduce put addcmul addcdiv addmm addmv addr addbmm baddbmm lerp triu
    tril logical_not logical_and logical_or logical_xor eq ne lt le gt ge not_equal less less_equal greater
    greater_equal bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift
    nan_to_num absolute negative cumsum cumprod atan2 arctan2 hypot xlogy copysign true_divide subtract
    multiply divide renorm sgn heaviside ldexp deg2rad rad2deg fix float_power sinc arcsin arccos arctan
    arcsinh arccosh arctanh""".split()


def _function(name: str) -> Callable:
    """Return the current out-of-place method."""
    f = getattr(Tensor, name, None)
    if f is None:
        raise MissingAttributeError(f"tensor.{name}_: there is no tensor.{name} to compute it",
                                    fix="write x.copy_(value)")
    return f


def _other(name: str) -> Callable:
    """Return an in-place method that computes the result first and copies it."""
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return compute_into(self, _function(name), args, kwargs, name + "_")

    method.__name__, method.__doc__ = (name + "_",
                                       f"Write the result of `{name}` into the tensor and return it.")
    return method


def _unary(name: str) -> Callable:
    """Return an in-place method of an op without other inputs."""
    op = REGISTRY.get(name)
    general = _other(name)
    if op is None:
        return general

    def method(self: Tensor) -> Tensor:
        check_writable(self, name + "_")
        fast = self.dtype in FLOATS and (self.rare is None or not self.rare.retains)
        return self if fast and try_into(op, (self,), (), self) else general(self)

    method.__name__, method.__doc__ = name + "_", general.__doc__
    return method


def _arithmetic(name: str) -> Callable:
    """Return an in-place method of + - * /."""
    op = REGISTRY[name]
    general = _other(name)

    def method(self: Tensor, other: Tensor | Number, *args: Any, **kwargs: Any) -> Tensor:
        if args or kwargs:                               # alpha=, rounding_mode=
            return general(self, other, *args, **kwargs)
        y = arithmetic(self, op, other)
        if y is NotImplemented:
            raise CallError(f"{name}_: other is not a tensor or a number", expected="a tensor or a number",
                            got=type(other).__name__)
        return y

    method.__name__ = name + "_"
    method.__doc__ = f"""{general.__doc__}

Args:
    other: tensor whose shape broadcasts to that of the tensor, or a number.
    *args, **kwargs: further arguments of `{name}`.

Raises:
    CallError: `other` is not a tensor or a number.
"""
    return method


def initialising(f: Callable) -> Callable:
    """Decorate a method that initializes a tensor.

    As in OneFlow, the method may write into a parameter, and the write is not recorded, like in flow.nn.init.
    """
    @functools.wraps(f)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.tracked and self.node is None and not self.is_lazy and self.link is None:
            with no_grad():
                return f(self, *args, **kwargs)
        return f(self, *args, **kwargs)

    return method


def _fill(f: Any, name: str) -> Callable:
    """Return an in-place method that fills the tensor with random numbers."""
    @initialising
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self, name)
        if self.global_layout is not None:                          # equal values on every rank
            kwargs["generator"] = shared_generator(self.placement, kwargs.get("generator"))
        z = f(self, *args, **kwargs)
        z.uniform |= self.global_layout is not None
        return write_into(self, z, name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fill the tensor with random numbers and return it.\n\n{f.__doc__}"
    return method


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy the values of another tensor, broadcast and cast, and return this tensor.

    Args:
        src: tensor. If this tensor is global, src may also be a local tensor or an array; rank 0's is used.
        non_blocking: return before copies from pinned memory to a GPU are done.
    """
    if non_blocking and self._device and isinstance(src, Tensor) and src.is_eager \
            and src.global_layout is self.global_layout is None:
        src = src.to(self.device, non_blocking=True)
    src = _as_tensor(src, self, "copy_")
    if self.global_layout is not None and src.global_layout is None and not src.uniform and src.is_eager \
            and current_interpreter() is None:
        whole = self.global_layout.whole
        src = to_global(src, whole.placement, whole.sbp)
    return write_into(self, src)


@initialising
def fill_(self: Tensor, value: Tensor | Number) -> Tensor:
    """Fill the tensor with a value.

    Args:
        value: number or 0-dim tensor.
    """
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError("fill_: only supports a 0-dimension value tensor", got=f"shape {tuple(value.shape)}",
                         fix="copy_ takes values of other shapes")
    return write_into(self, _as_tensor(value, self, "fill_"), "fill_")


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number into the diagonal, which consists of the elements whose indices are equal.

    Args:
        fill_value: the number.
        wrap: if a matrix has more rows than columns, repeat the diagonal below its end, with one row left out
            in between.

    Returns:
        The tensor itself.

    Raises:
        ShapeError: fewer than two axes, or more than two of different sizes.

    Example:
        >>> flow.zeros(3, 2).fill_diagonal_(5)
        tensor([[5., 0.],
                [0., 5.],
                [0., 0.]], dtype=flowedu.float32)
    """
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
        raise ShapeError("fill_diagonal_: this shape has no diagonal",
                         expected="a matrix, or more axes of one size",
                         got=str(tuple(self.shape)),
                         fix="x.diagonal(0, -2, -1).fill_(value) fills the last two axes'")
    places = np.indices(self.shape)
    rows = places[0] % (self.shape[1] + 1) if wrap and self.ndim == 2 else places[0]
    mask = from_numpy((places[1:] == rows).all(0)).to(self.device)
    return self.masked_fill_(mask, fill_value)


@initialising
def zero_(input: Tensor) -> Tensor:
    """Fill the tensor with zeros.

    Args:
        input: tensor of any shape and dtype.
    """
    return write_into(input, scalar(0, input.dtype), "zero_")


def _as_tensor(value: Any, like: Tensor, what: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if isinstance(value, (bool, int, float, np.generic)):
        return scalar(value.item() if isinstance(value, np.generic) else value, like.dtype, what)
    raise CallError(f"{what}: the value is not a tensor or a number", expected="a tensor or a number",
                    got=type(value).__name__)


# ---- methods that only change the shape
def _layout(name: str) -> Callable:
    """Return an in-place method that changes the shape but not the memory."""
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.tracked:
            check_writable(self, name + "_")
        before = self if self.is_lazy else twin(self)
        y = _function(name)(before, *args, **kwargs)
        if y is before:
            return self
        if self.is_lazy:
            if self.link is not None:
                raise CallError(f"{name}_: a view cannot change its shape in nn.Graph.build", got="a view",
                                expected="a tensor of its own", fix=f"x = x.{name}(...)")
            set_layout(self, y)
            take_value(self, y)
            return self
        set_layout(self, y)
        if self.tracked or y.tracked:
            set_history(self, y.node, y.out_index)
        return self

    method.__name__ = name + "_"
    method.__doc__ = f"Apply `{name}` to the tensor itself, without moving its memory, and return it."
    return method


def detach_(self: Tensor) -> Tensor:
    """Remove the history, so that the tensor becomes a leaf that does not require a gradient."""
    if self.link is not None and self._base.requires_grad:
        raise CallError("detach_: can't detach views in-place", expected="a tensor of its own", got="a view",
                        fix="x = x.detach()")
    if current_interpreter() is not None and self.is_lazy:
        take_value(self, self.detach())
        return self
    set_history(self, None)
    return self


def contiguous_(self: Tensor) -> Tensor:
    """Store the elements in row-major order, and return the tensor."""
    if not self.is_contiguous():
        self.data = self.detach().contiguous()
    return self


attach(Tensor, {name + "_": _unary(name) for name in _UNARY})
attach(Tensor, {name + "_": _other(name) for name in _OTHERS})
attach(Tensor, {name + "_": _arithmetic(name) for name in ("add", "sub", "mul", "div")})
attach(Tensor, {name + "_": _layout(name) for name in ("t", "transpose", "squeeze", "unsqueeze", "swapaxes",
                                                       "swapdims", "movedim", "moveaxis")})
attach(Tensor, {name: _fill(f, name) for name, f in {
    "uniform_": random.uniform, "normal_": random.normal_like, "exponential_": random.exponential,
    "random_": random.random, "bernoulli_": random.bernoulli_like,
    "trunc_normal_": random.trunc_normal}.items()})
attach(Tensor, {f.__name__: f for f in (copy_, fill_, fill_diagonal_, zero_, detach_, contiguous_)})


def _operator(name: str) -> Callable:
    general = {"ipow": "pow", "imod": "remainder", "ifloordiv": "floor_divide", "iand": "bitwise_and",
               "ior": "bitwise_or", "ixor": "bitwise_xor"}[name]

    def method(self: Tensor, other: Any) -> Tensor:
        f = getattr(Tensor, f"__{name[1:]}__", None) or _function(general)
        return compute_into(self, f, (other,), {}, general + "_")

    method.__name__ = f"__{name}__"
    return method


attach(Tensor, {f"__{n}__": _operator(n) for n in ("ipow", "imod", "ifloordiv", "iand", "ior", "ixor")})
