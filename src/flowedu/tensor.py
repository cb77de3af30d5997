"""flow.Tensor: eager values with gradients. The C part (data, tape links, + - * / @) is ops/core.pyx.

Enough to learn with; the whole of PyTorch's and OneFlow's Tensor comes with nn.Graph in chapter 5.
"""
from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from flowedu.autograd.tape import run_backward
from flowedu.blob import dtype as dt
from flowedu.blob.spec import normal_axis
from flowedu.blob.storage import empty as _empty
from flowedu.blob.storage import from_numpy as _from_numpy
from flowedu.errors import ArgumentError, DTypeError, GradientError, ShapeError
from flowedu.ops.core import (
    TensorBase,
    is_grad_enabled,
    register_operators,
    register_tensor,
    scalar_tensor,
    set_grad_enabled,
)
from flowedu.ops.define import REGISTRY
from flowedu.ops.value import matmul, operate

_op = REGISTRY.__getitem__
_SUM = _op("sum")


_ALL_AXES = [tuple(range(n)) for n in range(9)]


def _axes(axis, rank: int, what: str) -> tuple[int, ...]:
    if axis is None:
        return _ALL_AXES[rank]
    listed = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted({normal_axis(a, rank, what) for a in listed}))


@register_tensor
class Tensor(TensorBase):
    """An n-dimensional array that can be differentiated. Make one with `flow.tensor(data)`."""

    __slots__ = ()
    __array_priority__ = 1000

    # ---- what it is
    @property
    def requires_grad(self) -> bool:
        return self.requires_grad_

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if self.node is not None:
            raise GradientError("you can only change requires_grad flags of leaf tensors", fix="use .detach() first")
        if on and not self.dtype.is_floating_point:
            raise GradientError("only tensors of floating point can require gradients", got=repr(self.dtype))
        self.requires_grad_ = builtins.bool(on)

    @property
    def is_leaf(self) -> bool:
        return self.node is None

    @property
    def grad_fn(self):
        return self.node

    def size(self, dim: int | None = None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return self.size_

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def is_contiguous(self) -> bool:
        return self.contiguous_()

    @property
    def T(self) -> Tensor:
        return self.transpose(*reversed(range(self.ndim)))

    # ---- to and from NumPy
    def numpy(self) -> np.ndarray:
        """The same memory as an ndarray."""
        return np.asarray(memoryview(self))

    def __array__(self, dtype=None, copy=None):
        a = self.numpy()
        return a.astype(dtype) if dtype is not None and a.dtype != dtype else a.copy() if copy else a

    def item(self):
        if self.size_ != 1:
            raise ShapeError("item: only a tensor of one element is a number", expected="one element", got=str(self.shape))
        return self.numpy().reshape(-1)[0].item()

    def tolist(self):
        return self.numpy().tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        if self.size_ != 1:
            raise ShapeError("the truth value of a tensor with more than one element is ambiguous", got=str(self.shape))
        return builtins.bool(self.item())

    def __len__(self):
        if not self.ndim:
            raise DTypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        body = np.array2string(self.numpy(), separator=", ", precision=4, prefix="tensor(")
        tail = f", grad_fn=<{self.node.op.name}_backward>" if self.node else ", requires_grad=True" \
            if self.requires_grad_ else ""
        return f"tensor({body}, dtype={self.dtype!r}{tail})"

    # ---- gradients
    def backward(self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Accumulate d(self)/d(leaf) into every leaf's `.grad`."""
        run_backward([self], [_seed(self, gradient)], None, retain_graph or create_graph, create_graph)

    def detach(self) -> Tensor:
        """The same memory without history."""
        return tensor_alias(self)

    def requires_grad_on(self) -> Tensor:
        self.requires_grad = True
        return self

    # ---- ops
    def __neg__(self):
        return _op("neg")(self)

    def __pow__(self, other):
        return operate(_op("pow"), self, other)

    def __rpow__(self, other):
        return operate(_op("pow"), other, self)

    def __mod__(self, other):
        return operate(_op("mod"), self, other)

    def __floordiv__(self, other):
        return operate(_op("floordiv"), self, other)

    def __abs__(self):
        return _op("abs")(self)

    def __eq__(self, other):
        return operate(_op("equal"), self, other)

    def __ne__(self, other):
        return operate(_op("not_equal"), self, other)

    def __lt__(self, other):
        return operate(_op("less"), self, other)

    def __le__(self, other):
        return operate(_op("less_equal"), self, other)

    def __gt__(self, other):
        return operate(_op("greater"), self, other)

    def __ge__(self, other):
        return operate(_op("greater_equal"), self, other)

    __hash__ = object.__hash__

    def matmul(self, other: Tensor) -> Tensor:
        return matmul(self, other)

    def sum(self, dim=None, keepdim: bool = False) -> Tensor:
        return _SUM.call((self,), (_axes(dim, self.ndim, "sum"), keepdim))

    def mean(self, dim=None, keepdim: bool = False) -> Tensor:
        axes = _axes(dim, self.ndim, "mean")
        count = 1
        for a in axes:
            count *= self.shape[a]
        return self.sum(axes, keepdim) * (1.0 / max(count, 1))

    def max(self, dim=None, keepdim: bool = False) -> Tensor:
        return _op("max")(self, axis=_axes(dim, self.ndim, "max"), keepdims=keepdim)

    def min(self, dim=None, keepdim: bool = False) -> Tensor:
        return _op("min")(self, axis=_axes(dim, self.ndim, "min"), keepdims=keepdim)

    def argmax(self, dim: int = -1) -> Tensor:
        return _op("argmax")(self, axis=normal_axis(dim, self.ndim, "argmax"))

    def reshape(self, *shape) -> Tensor:
        return _op("reshape")(self, shape=full_shape(self.size_, _listed(shape)))

    view = reshape

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        a, b = normal_axis(start_dim, self.ndim, "flatten"), normal_axis(end_dim, self.ndim, "flatten")
        return self.reshape(self.shape[:a] + (-1,) + self.shape[b + 1:])

    def transpose(self, *perm) -> Tensor:
        return _op("transpose")(self, perm=_listed(perm))

    permute = transpose

    def expand(self, *shape) -> Tensor:
        return _op("expand")(self, shape=_listed(shape))

    def contiguous(self) -> Tensor:
        return self if self.contiguous_() else _op("contiguous")(self)

    def clone(self) -> Tensor:
        return _op("contiguous")(self)

    def to(self, dtype: dt.dtype) -> Tensor:
        return self if dtype is self.dtype else _op("cast")(self, dtype=dtype)

    def float(self) -> Tensor:
        return self.to(dt.float32)

    def double(self) -> Tensor:
        return self.to(dt.float64)

    def __getitem__(self, index) -> Tensor:
        """Integers and slices with positive step: a view."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.ndim:
            raise ShapeError(f"too many indices for a tensor of {self.ndim} axes", got=str(len(index)))
        start, stop, step, shape = [], [], [], []
        for axis, n in enumerate(self.shape):
            i = index[axis] if axis < len(index) else slice(None)
            if isinstance(i, slice):
                a, b, s = i.indices(n)
                if s < 1:
                    raise ArgumentError("step must be greater than zero", got=str(i), fix="flip the axis instead")
                b = max(a, b)
                shape.append(-(-(b - a) // s))
            elif isinstance(i, (int, np.integer)) and not isinstance(i, builtins.bool):
                if not -n <= i < n:
                    raise IndexError(f"index {i} is out of range for axis {axis} of size {n}")
                a, b, s = int(i) % n, int(i) % n + 1, 1
            else:
                raise ArgumentError("this kind of index comes with chapter 5", expected="integers and slices", got=repr(i))
            start.append(a), stop.append(b), step.append(s)
        y = _op("slice")(self, start=start, stop=stop, step=step)
        return y if len(shape) == self.ndim else _op("reshape")(y, shape=tuple(shape))

    def __setitem__(self, index, value) -> None:
        """Write into the elements that `self[index]` views."""
        if self.requires_grad_:
            raise GradientError("a tensor that requires grad is being written in place", got=f"shape {self.shape}",
                                expected="a tensor without history", fix="write into x.detach(), which shares its memory")
        self[index].numpy()[...] = value.numpy() if isinstance(value, Tensor) else value

    def __iter__(self):
        return (self[i] for i in range(len(self)))


def _method(name: str):
    op = _op(name)

    def method(self) -> Tensor:
        return op.call((self,), ())

    method.__name__, method.__doc__ = name, op.doc or f"Elementwise {name}."
    return method


for _name in ("relu exp log sqrt rsqrt square sin cos tanh sigmoid softplus abs sign floor ceil round erf gelu "
              "reciprocal").split():
    setattr(Tensor, _name, _method(_name))

register_operators(_op("add"), _op("sub"), _op("mul"), _op("div"), _op("matmul"), _SUM, matmul, operate)


def _listed(shape) -> tuple[int, ...]:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple(int(n) for n in shape)


def full_shape(size: int, shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` with its one -1 worked out. Raises ShapeError."""
    if list(shape).count(-1) > 1:
        raise ShapeError("reshape: only one dimension can be inferred", expected="at most one -1", got=str(tuple(shape)))
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if -1 in shape and (known == 0 or size % known):
        raise ShapeError("reshape: the shape does not divide the elements", expected=f"a divisor of {size}",
                         got=str(tuple(shape)))
    return tuple(size // known if n == -1 else n for n in shape)


def _seed(t: Tensor, gradient) -> Tensor:
    if not t.requires_grad_:
        raise GradientError("backward: this tensor does not require a gradient and has no history",
                            fix="make an input with requires_grad=True")
    if gradient is None:
        if t.size_ != 1:
            raise GradientError("backward: a gradient can be implied only for one-element outputs", got=str(t.shape),
                                fix="call .sum().backward(), or pass gradient=")
        return scalar_tensor(1, t.dtype) if t.ndim == 0 else ones_like(t)
    if gradient.shape != t.shape:
        raise ShapeError("backward: the gradient does not have the output's shape", expected=str(t.shape),
                         got=str(gradient.shape))
    return gradient


def tensor_alias(t: Tensor) -> Tensor:
    from flowedu.blob.storage import view
    return view(t, t.shape, t.strides, 0, Tensor)


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool = False, create_graph: bool = False):
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone."""
    outs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    ins = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    seeds = grad_outputs if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,) * len(outs)
    found = run_backward(list(outs), [_seed(t, g) for t, g in zip(outs, seeds)], list(ins),
                         retain_graph or create_graph, create_graph)
    for x, g in zip(ins, found):
        if g is None:
            raise GradientError("grad: an input was not used in making the outputs", got=f"an input of shape {x.shape}")
    return tuple(found)


class no_grad:
    """Context manager: nothing inside is recorded for backward."""

    def __enter__(self):
        self.old = set_grad_enabled(False)
        return self

    def __exit__(self, *exc):
        set_grad_enabled(self.old)


# ---- making tensors
def tensor(data, *, dtype=None, requires_grad: bool = False) -> Tensor:
    """A tensor from numbers, nested lists or an array (copied). Floats become float32, ints int64; arrays keep theirs."""
    if isinstance(data, Tensor):
        data = data.numpy()
    if isinstance(data, np.ndarray) or np.isscalar(data) and hasattr(data, "dtype"):
        a = np.array(data)
    else:
        try:
            a = np.array(data)
        except ValueError:
            raise ShapeError("tensor: the nested lists are ragged", expected="lists of one length at each level") from None
        if a.dtype == np.float64:
            a = a.astype(np.float32)
        if a.size == 0:
            a = a.astype(np.float32)
    kind = dt.as_dtype(a.dtype if dtype is None else dtype)
    t = _from_numpy(np.array(a, dtype=kind.numpy, order="C", copy=True), kind, Tensor)
    if requires_grad:
        t.requires_grad = True
    return t


def from_numpy(a: np.ndarray) -> Tensor:
    """A tensor over the memory of `a`: writes on one side show on the other."""
    return _from_numpy(a, dt.as_dtype(a.dtype, "from_numpy: a.dtype"), Tensor)


def empty(*shape, dtype=dt.float32) -> Tensor:
    return _empty(_listed(shape), dtype, Tensor)


def full(shape, value, dtype=None, requires_grad: bool = False) -> Tensor:
    dtype = dtype or (dt.float32 if isinstance(value, float) else dt.int64)
    t = _op("constant")(shape=_listed((shape,)) if isinstance(shape, int) else tuple(shape), value=value, dtype=dtype)
    if requires_grad:
        t.requires_grad = True
    return t


def ones_like(x: Tensor) -> Tensor:
    return full(x.shape, 1, x.dtype)


def zeros_like(x: Tensor) -> Tensor:
    return full(x.shape, 0, x.dtype)


__all__ = ["Tensor", "empty", "from_numpy", "full", "grad", "is_grad_enabled", "no_grad", "ones_like", "tensor",
           "zeros_like"]
