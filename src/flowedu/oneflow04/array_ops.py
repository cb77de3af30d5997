"""Shapes, constants, concatenation, slices: flow.reshape and its family, for blobs and tensors."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flowedu import ops
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError, UnsupportedError
from flowedu.errors.once import inert
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.index_ops import argwhere
from flowedu.oneflow04.math import _operands
from flowedu.ops.front import front

_o = ops.REGISTRY


def _is_int(n) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


@front("Reshape")
def reshape(x, shape: Sequence[int]):
    """The same elements in another shape; one axis may be -1."""
    if not isinstance(shape, (list, tuple)):
        raise CheckError("reshape: shape is not a list", expected="a list or tuple of ints", got=repr(shape),
                         fix=f"[{shape}]" if isinstance(shape, int) else "[x.shape[0], -1] flattens all but the first axis")
    if list(shape).count(-1) > 1 or any(not _is_int(n) or (n != -1 and n <= 0) for n in shape):
        raise CheckError("reshape: every size must be above zero, at most one -1", expected="sizes > 0, or one -1",
                         got=str(tuple(shape)), fix="write the sizes that are known, and -1 for the one that is not")
    known = prod(n for n in shape if n != -1)
    full = tuple(int(x.spec.size // known if n == -1 else n) for n in shape)
    if (-1 in shape and x.spec.size % known) or (-1 not in shape and known != x.spec.size):
        raise CheckError("reshape: the number of elements changes", expected=f"{x.spec.size} elements, as in {x.shape}",
                         got=str(tuple(shape)), fix="use -1 for one axis and let it be worked out")
    return _o["reshape"](x, shape=full)


dynamic_reshape = reshape


@front("Transpose")
def transpose(a, perm: Sequence[int] | None = None, conjugate: bool = False, batch_axis_non_change: bool = False):
    """Axes in the order `perm` (required, as in OneFlow 0.4)."""
    inert("transpose(batch_axis_non_change)", bool(batch_axis_non_change), False, "no axis is a batch's by nature")
    if not isinstance(perm, (list, tuple)):
        raise CheckError("transpose: perm is required", expected="a list or tuple with each axis once", got=repr(perm),
                         fix=f"perm={list(reversed(range(a.ndim)))} reverses the axes")
    if conjugate:
        raise UnsupportedError("transpose: conjugate is not supported", expected="conjugate=False", got=repr(conjugate),
                               fix="leave it out: there are no complex numbers here")
    return _o["transpose"](a, perm=tuple(normal_axis(p, a.ndim, "transpose") for p in perm))


@front("Flatten")
def flatten(x, start_dim: int = 0, end_dim: int = -1):
    """Axes start_dim..end_dim merged into one."""
    a, b = normal_axis(start_dim, x.ndim, "flatten"), normal_axis(end_dim, x.ndim, "flatten")
    if b < a:
        raise CheckError("flatten: end_dim comes before start_dim", expected="start_dim <= end_dim",
                         got=f"start_dim={start_dim}, end_dim={end_dim} of {x.shape}", fix="exchange them")
    return _o["reshape"](x, shape=(*x.shape[:a], prod(x.shape[a:b + 1]), *x.shape[b + 1:]))


@front("Squeeze")
def _squeeze(x, axis):
    if not isinstance(axis, (list, tuple)):
        raise CheckError("squeeze: axis is not a list", expected="a list of axes", got=repr(axis), fix=f"axis=[{axis}]")
    drop = [normal_axis(a, x.ndim, "squeeze") for a in axis]
    if any(x.shape[i] != 1 for i in drop):
        raise CheckError("squeeze: an axis is longer than 1", expected="axes of size 1", got=f"axis={axis} of {x.shape}",
                         fix="leave axis out to drop every axis of size 1, or reshape")
    return _o["reshape"](x, shape=tuple(n for i, n in enumerate(x.shape) if i not in drop))


def squeeze(x, axis: Sequence[int] | None = None, name: str | None = None):
    """Without the axes of size 1 in `axis` (a list; None: all of them, in the largest batch where the batch varies)."""
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if n == 1]
    return _squeeze(x, axis, name=name)


@front("ExpandDims")
def expand_dims(x, axis: int):
    """With a new axis of size 1 at `axis`."""
    a = normal_axis(axis, x.ndim + 1, "expand_dims")
    return _o["reshape"](x, shape=x.shape[:a] + (1,) + x.shape[a:])


@front("Concat")
def _concat(inputs, axis):
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise CheckError("concat: inputs is not a list of blobs", expected="one blob or more", got=repr(inputs),
                         fix="concat([a, b], axis=0)")
    if len(inputs) == 1:
        return inputs[0]
    return _o["concat"](*inputs, axis=normal_axis(axis, inputs[0].ndim, "concat"))


def concat(inputs: Sequence | None = None, axis: int = 0, max_dim_size=None, name: str | None = None,
           values: Sequence | None = None):
    """Joined along `axis`; all other axes must agree. One input comes back as it is. `values` is `inputs` by its old
    name; max_dim_size does nothing, and says so once."""
    inert("concat(max_dim_size)", max_dim_size, None, "memory is planned for the sizes there are")
    return _concat(values if inputs is None else inputs, axis, name=name)


@front("Stack")
def stack(inputs: Sequence, axis: int = 0):
    """Joined along a new axis."""
    a = normal_axis(axis, inputs[0].ndim + 1, "stack")
    lifted = [_o["reshape"](x, shape=x.shape[:a] + (1,) + x.shape[a:]) for x in inputs]
    return _o["concat"](*lifted, axis=a) if len(lifted) > 1 else lifted[0]


@front("Slice")
def slice(x, begin: Sequence[int], size: Sequence[int]):
    """x[begin : begin+size] on every axis; None begins at 0, size -1 goes to the end."""
    if len(begin) != x.ndim or len(size) != x.ndim:
        raise ShapeError("slice: begin and size must cover all axes", expected=f"{x.ndim} numbers each",
                         got=f"begin={list(begin)}, size={list(size)}",
                         fix="begin None and size -1 keep an axis as it is")
    start = [0 if b is None else b + n if b < 0 else b for b, n in zip(begin, x.shape)]
    stop = [n if s in (-1, None) else b + s for b, s, n in zip(start, size, x.shape)]
    for b, s, n in zip(start, stop, x.shape):
        if not 0 <= b < s <= n:
            raise ShapeError("slice: the range is empty or too long", expected=f"ranges inside {x.shape}",
                             got=f"begin={list(begin)}, size={list(size)}", fix="size -1 goes to the end of an axis")
    return _o["slice"](x, start=start, stop=stop, step=(1,) * x.ndim)


@front("Cast")
def cast(x, dtype):
    """The same numbers in another dtype; the same blob when it has that dtype already."""
    dtype = dt.as_dtype(dtype, "cast: dtype")
    return x if x.dtype is dtype else _o["cast"](x, dtype=dtype)


@front("Constant", arrays=True)
def constant(value, dtype=None, shape: Sequence[int] | None = None):
    """A value everywhere. dtype is required."""
    if not isinstance(value, (int, float)):
        raise UnsupportedError("constant: value is not a number", expected="a Python int or float", got=repr(value),
                               fix="float(x) for a NumPy scalar; feed an array as an argument of the job")
    if dtype is None:
        raise CheckError("constant: dtype is required", expected="flow.float32, flow.int32, ...", got="None",
                         fix=f"constant({value!r}, flow.float32, shape)")
    shape = () if shape is None else shape
    if not isinstance(shape, (list, tuple)) or any(not _is_int(n) or n < 0 for n in shape):
        raise ArgumentError("constant: shape is not a shape", expected="a list or tuple of ints of 0 or more",
                            got=repr(shape), fix=f"shape=({shape},)" if _is_int(shape) else "shape=(2, 3), say")
    return _o["constant"](shape=tuple(map(int, shape)), value=value, dtype=dt.as_dtype(dtype))


def constant_scalar(value, dtype=None, name: str | None = None):
    """A blob of one element, shape (1,). dtype is required."""
    return constant(value, dtype, (1,), name=name)


def zeros(shape: Sequence[int], dtype=dt.float32, name: str | None = None):
    """Zeros."""
    return constant(0, dtype, shape, name=name)


def ones(shape: Sequence[int], dtype=dt.float32, name: str | None = None):
    """Ones."""
    return constant(1, dtype, shape, name=name)


@front("ConstantLike")
def constant_like(like, value, dtype=None):
    """`value` everywhere, in the shape (and dtype) of `like`."""
    return constant.__wrapped__(value, dtype or like.dtype, like.shape)


def zeros_like(like, dtype=None, name: str | None = None):
    return constant_like(like, 0, dtype, name=name)


def ones_like(like, dtype=None, name: str | None = None):
    return constant_like(like, 1, dtype, name=name)


@front("Identity")
def identity(x):
    """x, under another name."""
    return _o["identity"](x)


@front("AmpWhiteIdentity")
def amp_white_identity(x):
    """x. (Where OneFlow computes in 16 bits, a place at which it may; here products alone do.)"""
    return _o["identity"](x)


@front("CastToStaticShape")
def cast_to_static_shape(x):
    """x. (Here every value has the shape that it has in this run.)"""
    return _o["identity"](x)


@front("IdentityN")
def identity_n(inputs: Sequence) -> list:
    """The inputs, a list, each under another name."""
    return [_o["identity"](x) for x in inputs]


@front("Where")
def where(condition, x=None, y=None):
    """x where condition is not 0, else y; broadcasting. Without x and y: argwhere(condition)."""
    if x is None and y is None:
        return argwhere.__wrapped__(condition)       # its body: we are on values here
    if x is None or y is None:
        raise ArgumentError("where: x and y go together", expected="where(condition, x, y) or where(condition)",
                            got="one of them alone",
                            fix="where(condition, x, flow.zeros_like(x)) keeps x where the condition holds")
    x, y = _operands("where", x, y)
    return _o["where"](_mask(condition), x, y)


def _mask(condition):
    """An int8 mask of what is not 0."""
    if condition.dtype in (dt.int8, dt.uint8, dt.bool_):
        return condition
    return ops.elementwise.not_equal(condition, condition * 0)


@front("MaskedFill")
def masked_fill(x, mask, value: float):
    """x with `value` where the mask is not 0; broadcasting."""
    if not isinstance(value, (int, float)):
        raise ArgumentError("masked_fill: value is not a number", expected="a Python int or float",
                            got=type(value).__name__, fix="flow.where(mask, value, x) takes blobs")
    if mask.dtype.is_floating_point:
        raise DTypeError("masked_fill: the mask is not of integers", expected="int8, int32, int64: 0 keeps x",
                         got=mask.dtype.name, fix="compare first: masked_fill(x, scores > limit, 0)")
    return _o["where"](_mask(mask), _o["constant"](shape=(), value=value, dtype=x.dtype), x)


@front("ElemCnt")
def elem_cnt(inputs, dtype=None):
    """The number of elements, shape (1,); int32 unless given."""
    return _o["constant"](shape=(1,), value=inputs.spec.size, dtype=dt.as_dtype(dtype or dt.int32, "elem_cnt: dtype"))


@front("Assign")
def _assign(ref, value):
    if getattr(ref, "kind", "variable") != "variable":
        raise ArgumentError("assign: ref is not a variable", expected="what flow.get_variable gave", got=f"{ref.kind} "
                            f"{ref.name}", fix="only variables live on between runs")
    if ref.spec != value.spec:
        raise ShapeError("assign: value does not fit", expected=f"{ref.spec}, as ref", got=str(value.spec),
                         fix="flow.reshape or flow.cast the value")
    _o["assign"](_o["contiguous"](value), ref)         # a copy: the value may be a variable that changes, too


def assign(ref, value, dtype=None, name: str | None = None) -> None:
    """Let the variable `ref` be `value` from the end of this run on: the rest of the job still reads the old one.

    Outside jobs it changes at once. dtype does nothing, as in OneFlow 0.4, and says so once.
    """
    inert("assign(dtype)", dtype, None, "a variable keeps its element type")
    _assign(ref, value, name=name)


def _micro_batches(what: str, does: str):
    def f(*args, **kwargs):
        raise UnsupportedError(f"{what}: not supported", expected="gradients accumulated by the job itself",
                               got=f"{what}, which {does}",
                               fix="config.train.num_gradient_accumulation_steps(n) updates once in n runs")

    f.__name__, f.__doc__ = what, f"OneFlow's {what} {does}. Use config.train.num_gradient_accumulation_steps instead."
    return f


repeat = _micro_batches("repeat", "gives a blob to several micro-batches")
pack = _micro_batches("pack", "joins the results of micro-batches")
unpack = _micro_batches("unpack", "cuts a batch into micro-batches")
acc = _micro_batches("acc", "adds up over micro-batches")

__all__ = ["acc", "amp_white_identity", "assign", "cast", "cast_to_static_shape", "concat", "constant", "constant_like",
           "constant_scalar", "dynamic_reshape", "elem_cnt", "expand_dims", "flatten", "identity", "identity_n",
           "masked_fill", "ones", "ones_like", "pack", "repeat", "reshape", "slice", "squeeze", "stack", "transpose",
           "unpack", "where", "zeros", "zeros_like"]
