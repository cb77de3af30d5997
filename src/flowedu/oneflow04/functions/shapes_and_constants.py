"""OneFlow 0.4's functions for shapes, constants, concatenation, and slices of blobs and tensors."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flowedu import ops
from flowedu.core.ops.concat import concat as concat_op
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.elementwise import where as where_op
from flowedu.core.ops.view import assign as assign_op
from flowedu.core.ops.view import cast as cast_op
from flowedu.core.ops.view import constant as constant_op
from flowedu.core.ops.view import contiguous
from flowedu.core.ops.view import identity as identity_op
from flowedu.core.ops.view import reshape as reshape_op
from flowedu.core.ops.view import transpose as transpose_op
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError, UnsupportedError
from flowedu.errors.once import inert
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.functions.gather_scatter import argwhere
from flowedu.oneflow04.math import _operands  # type: ignore[attr-defined]  # private, so not in the stub
from flowedu.ops.front import front


def _is_int(n) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


@front("Reshape")
def reshape(x, shape: Sequence[int]):
    """Return the elements of `x` in another shape.

    Args:
        x: a blob or tensor.
        shape: a list or tuple of sizes above 0. One size may be -1 and is computed from the others.

    Raises:
        CheckError: a size is invalid, or the number of elements would change.
    """
    if not isinstance(shape, (list, tuple)):
        raise CheckError("reshape: shape is not a list", expected="a list or tuple of ints", got=repr(shape),
                         fix=f"[{shape}]" if isinstance(shape, int)
                         else "[x.shape[0], -1] flattens all but the first axis")
    if list(shape).count(-1) > 1 or any(not _is_int(n) or (n != -1 and n <= 0) for n in shape):
        raise CheckError("reshape: every size must be above zero, at most one -1",
                         expected="sizes > 0, or one -1",
                         got=str(tuple(shape)), fix="write the sizes that are known, and -1 for the one that "
                         "is not")
    known = prod(n for n in shape if n != -1)
    full = tuple(int(x.spec.size // known if n == -1 else n) for n in shape)
    if (-1 in shape and x.spec.size % known) or (-1 not in shape and known != x.spec.size):
        raise CheckError("reshape: the number of elements changes",
                         expected=f"{x.spec.size} elements, as in {x.shape}",
                         got=str(tuple(shape)), fix="use -1 for one axis and let it be worked out")
    return reshape_op(x, shape=full)


dynamic_reshape = reshape


@front("Transpose")
def transpose(a, perm: Sequence[int] | None = None, conjugate: bool = False,
              batch_axis_non_change: bool = False):
    """Permute the axes of `a`.

    Args:
        a: a blob or tensor.
        perm: a list or tuple with each axis once. Required, as in OneFlow 0.4.
        conjugate: must be False, since complex dtypes are not supported.
        batch_axis_non_change: has no effect; another value than False warns once.
    """
    inert("transpose(batch_axis_non_change)", bool(batch_axis_non_change), False,
          "no axis is a batch's by nature")
    if not isinstance(perm, (list, tuple)):
        raise CheckError("transpose: perm is required", expected="a list or tuple with each axis once",
                         got=repr(perm), fix=f"perm={list(reversed(range(a.ndim)))} reverses the axes")
    if conjugate:
        raise UnsupportedError("transpose: conjugate is not supported", expected="conjugate=False",
                               got=repr(conjugate), fix="leave it out: there are no complex numbers here")
    return transpose_op(a, perm=tuple(normal_axis(p, a.ndim, "transpose") for p in perm))


@front("Flatten")
def flatten(x, start_dim: int = 0, end_dim: int = -1):
    """Merge the axes from `start_dim` to `end_dim` into one.

    Args:
        x: a blob or tensor.
        start_dim: the first axis to merge.
        end_dim: the last axis to merge.
    """
    a, b = normal_axis(start_dim, x.ndim, "flatten"), normal_axis(end_dim, x.ndim, "flatten")
    if b < a:
        raise CheckError("flatten: end_dim comes before start_dim", expected="start_dim <= end_dim",
                         got=f"start_dim={start_dim}, end_dim={end_dim} of {x.shape}", fix="exchange them")
    return reshape_op(x, shape=(*x.shape[:a], prod(x.shape[a:b + 1]), *x.shape[b + 1:]))


@front("Squeeze")
def _squeeze(x, axis):
    if not isinstance(axis, (list, tuple)):
        raise CheckError("squeeze: axis is not a list", expected="a list of axes", got=repr(axis),
                         fix=f"axis=[{axis}]")
    drop = [normal_axis(a, x.ndim, "squeeze") for a in axis]
    if any(x.shape[i] != 1 for i in drop):
        raise CheckError("squeeze: an axis is longer than 1", expected="axes of size 1",
                         got=f"axis={axis} of {x.shape}",
                         fix="leave axis out to drop every axis of size 1, or reshape")
    return reshape_op(x, shape=tuple(n for i, n in enumerate(x.shape) if i not in drop))


def squeeze(x, axis: Sequence[int] | None = None, name: str | None = None):
    """Remove axes of size 1.

    Args:
        x: a blob or tensor.
        axis: a list of axes of size 1. None removes all axes of size 1. If the shape varies from run to run,
            the sizes in the largest batch determine these axes.

    Raises:
        CheckError: `axis` is not a list, or one of the axes is longer than 1.
    """
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if n == 1]
    return _squeeze(x, axis, name=name)


@front("ExpandDims")
def expand_dims(x, axis: int):
    """Insert an axis of size 1 at position `axis`.

    Args:
        x: a blob or tensor.
        axis: the position of the new axis in the result.
    """
    a = normal_axis(axis, x.ndim + 1, "expand_dims")
    return reshape_op(x, shape=x.shape[:a] + (1,) + x.shape[a:])


@front("Concat")
def _concat(inputs, axis):
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise CheckError("concat: inputs is not a list of blobs", expected="one blob or more",
                         got=repr(inputs), fix="concat([a, b], axis=0)")
    if len(inputs) == 1:
        return inputs[0]
    return concat_op(*inputs, axis=normal_axis(axis, inputs[0].ndim, "concat"))


def concat(inputs: Sequence | None = None, axis: int = 0, max_dim_size=None, name: str | None = None,
           values: Sequence | None = None):
    """Concatenate blobs along an axis.

    Args:
        inputs: a list of one or more blobs; all axes except `axis` agree. A single blob is returned
            unchanged.
        axis: the axis to concatenate along.
        max_dim_size: has no effect; a value warns once.
        values: the old name of `inputs`.
    """
    inert("concat(max_dim_size)", max_dim_size, None, "memory is planned for the sizes there are")
    return _concat(values if inputs is None else inputs, axis, name=name)


@front("Stack")
def stack(inputs: Sequence, axis: int = 0):
    """Concatenate blobs along a new axis.

    Args:
        inputs: a list of blobs of one shape.
        axis: the position of the new axis in the result.
    """
    a = normal_axis(axis, inputs[0].ndim + 1, "stack")
    lifted = [reshape_op(x, shape=x.shape[:a] + (1,) + x.shape[a:]) for x in inputs]
    return concat_op(*lifted, axis=a) if len(lifted) > 1 else lifted[0]


@front("Slice")
def slice(x, begin: Sequence[int], size: Sequence[int]):
    """Return `x[begin : begin + size]` along every axis.

    Args:
        x: a blob or tensor.
        begin: the first index for each axis; None is 0.
        size: the number of elements for each axis; -1 takes all up to the end.

    Raises:
        ShapeError: a list does not cover all axes, or a range is empty or too long.
    """
    if len(begin) != x.ndim or len(size) != x.ndim:
        raise ShapeError("slice: begin and size must cover all axes", expected=f"{x.ndim} numbers each",
                         got=f"begin={list(begin)}, size={list(size)}",
                         fix="begin None and size -1 keep an axis as it is")
    start = [b or 0 for b in begin]
    start = [b + n if b < 0 else b for b, n in zip(start, x.shape)]
    stop = [n if s in (-1, None) else b + s for b, s, n in zip(start, size, x.shape)]
    for b, s, n in zip(start, stop, x.shape):
        if not 0 <= b < s <= n:
            raise ShapeError("slice: the range is empty or too long", expected=f"ranges inside {x.shape}",
                             got=f"begin={list(begin)}, size={list(size)}",
                             fix="size -1 goes to the end of an axis")
    return slice_op(x, start=start, stop=stop, step=(1,) * x.ndim)


@front("Cast")
def cast(x, dtype):
    """Convert `x` to another dtype.

    Args:
        x: a blob or tensor. It is returned unchanged if it already has the dtype.
        dtype: the dtype of the result.
    """
    dtype = dt.as_dtype(dtype, "cast: dtype")
    return x if x.dtype is dtype else cast_op(x, dtype=dtype)


@front("Constant", arrays=True)
def constant(value, dtype=None, shape: Sequence[int] | None = None):
    """Return a blob filled with one value.

    Args:
        value: a Python int or float.
        dtype: the dtype of the result. Required.
        shape: a list or tuple of sizes; None is the shape ().
    """
    if not isinstance(value, (int, float)):
        raise UnsupportedError("constant: value is not a number", expected="a Python int or float",
                               got=repr(value),
                               fix="float(x) for a NumPy scalar; feed an array as an argument of the job")
    if dtype is None:
        raise CheckError("constant: dtype is required", expected="flow.float32, flow.int32, ...", got="None",
                         fix=f"constant({value!r}, flow.float32, shape)")
    shape = () if shape is None else shape
    if not isinstance(shape, (list, tuple)) or any(not _is_int(n) or n < 0 for n in shape):
        raise ArgumentError("constant: shape is not a shape", expected="a list or tuple of ints of 0 or more",
                            got=repr(shape), fix=f"shape=({shape},)" if _is_int(shape)
                            else "shape=(2, 3), say")
    return constant_op(shape=tuple(map(int, shape)), value=value, dtype=dt.as_dtype(dtype))


def constant_scalar(value, dtype=None, name: str | None = None):
    """Return a blob of shape (1,).

    Args:
        value: a Python int or float.
        dtype: the dtype of the result. Required.
    """
    return constant(value, dtype, (1,), name=name)


def zeros(shape: Sequence[int], dtype=dt.float32, name: str | None = None):
    """Return a blob filled with zeros.

    Args:
        shape: a list or tuple of sizes.
        dtype: the dtype of the result.
    """
    return constant(0, dtype, shape, name=name)


def ones(shape: Sequence[int], dtype=dt.float32, name: str | None = None):
    """Return a blob filled with ones.

    Args:
        shape: a list or tuple of sizes.
        dtype: the dtype of the result.
    """
    return constant(1, dtype, shape, name=name)


@front("ConstantLike")
def constant_like(like, value, dtype=None):
    """Return a blob in the shape of `like`, filled with one value.

    Args:
        like: a blob or tensor.
        value: a Python int or float.
        dtype: the dtype of the result; None takes that of `like`.
    """
    return constant.__wrapped__(value, dtype or like.dtype, like.shape)


def zeros_like(like, dtype=None, name: str | None = None):
    """Return zeros in the shape of `like`.

    Args:
        like: a blob or tensor.
        dtype: the dtype of the result; None takes that of `like`.
    """
    return constant_like(like, 0, dtype, name=name)


def ones_like(like, dtype=None, name: str | None = None):
    """Return ones in the shape of `like`.

    Args:
        like: a blob or tensor.
        dtype: the dtype of the result; None takes that of `like`.
    """
    return constant_like(like, 1, dtype, name=name)


@front("Identity")
def identity(x):
    """Return `x` as a blob with its own name.

    Args:
        x: a blob or tensor.
    """
    return identity_op(x)


@front("AmpWhiteIdentity")
def amp_white_identity(x):
    """Return `x` as a blob with its own name.

    Args:
        x: a blob or tensor.

    Note:
        In OneFlow the op marks a value that may be computed in 16 bits. flowedu computes only products (such
        as matmul and conv2d) in 16 bits, so the mark has no effect.
    """
    return identity_op(x)


@front("CastToStaticShape")
def cast_to_static_shape(x):
    """Return `x` as a blob with its own name.

    Args:
        x: a blob or tensor.

    Note:
        In flowedu each value has the shape of the current run, so the op does nothing else.
    """
    return identity_op(x)


@front("IdentityN")
def identity_n(inputs: Sequence) -> list:
    """Return each input as a blob with its own name.

    Args:
        inputs: a list of blobs.
    """
    return [identity_op(x) for x in inputs]


@front("Where")
def where(condition, x=None, y=None):
    """Choose elements from `x` and `y` by a condition.

    Args:
        condition: a blob; elements that are not 0 choose from `x`.
        x: a blob or number for elements where the condition holds.
        y: a blob or number for all other elements. The three shapes broadcast.

    Returns: a blob. Without `x` and `y`, the result of `argwhere(condition)`.
    """
    if x is None and y is None:
        return argwhere.__wrapped__(condition)       # the body of argwhere: the arguments are values here
    if x is None or y is None:
        raise ArgumentError("where: x and y go together",
                            expected="where(condition, x, y) or where(condition)", got="one of them alone",
                            fix="where(condition, x, flow.zeros_like(x)) keeps x where the condition holds")
    x, y = _operands("where", x, y)
    return where_op(_mask(condition), x, y)


def _mask(condition):
    """Return an int8 mask of the elements that are not 0."""
    if condition.dtype in (dt.int8, dt.uint8, dt.bool_):
        return condition
    return ops.elementwise.not_equal(condition, condition * 0)


@front("MaskedFill")
def masked_fill(x, mask, value: float):
    """Replace elements of `x` by a value where the mask is not 0.

    Args:
        x: a blob or tensor.
        mask: a blob of integers that broadcasts against `x`.
        value: a Python int or float.
    """
    if not isinstance(value, (int, float)):
        raise ArgumentError("masked_fill: value is not a number", expected="a Python int or float",
                            got=type(value).__name__, fix="flow.where(mask, value, x) takes blobs")
    if mask.dtype.is_floating_point:
        raise DTypeError("masked_fill: the mask is not of integers", expected="int8, int32, int64: 0 keeps x",
                         got=mask.dtype.name, fix="compare first: masked_fill(x, scores > limit, 0)")
    return where_op(_mask(mask), constant_op(shape=(), value=value, dtype=x.dtype), x)


@front("ElemCnt")
def elem_cnt(inputs, dtype=None):
    """Return the number of elements of a blob.

    Args:
        inputs: a blob or tensor.
        dtype: the dtype of the result; None is int32.

    Returns: a blob of shape (1,).
    """
    return constant_op(shape=(1,), value=inputs.spec.size,
                       dtype=dt.as_dtype(dtype or dt.int32, "elem_cnt: dtype"))


@front("Assign")
def _assign(ref, value):
    if getattr(ref, "kind", "variable") != "variable":
        raise ArgumentError("assign: ref is not a variable", expected="what flow.get_variable gave",
                            got=f"{ref.kind} {ref.name}", fix="only variables live on between runs")
    if ref.spec != value.spec:
        raise ShapeError("assign: value does not fit", expected=f"{ref.spec}, as ref", got=str(value.spec),
                         fix="flow.reshape or flow.cast the value")
    assign_op(contiguous(value), ref)         # a copy: the value may be a variable that also changes


def assign(ref, value, dtype=None, name: str | None = None) -> None:
    """Store `value` in the variable `ref` at the end of the run.

    Later calls in the job read the old value. Outside jobs the variable changes immediately.

    Args:
        ref: a variable from flow.get_variable.
        value: a blob with the shape and dtype of `ref`.
        dtype: has no effect, as in OneFlow 0.4; a value warns once.

    Raises:
        ArgumentError: `ref` is not a variable.
        ShapeError: `value` has another shape or dtype.
    """
    inert("assign(dtype)", dtype, None, "a variable keeps its element type")
    _assign(ref, value, name=name)


def _micro_batches(what: str, does: str):
    def f(*args, **kwargs):
        raise UnsupportedError(f"{what}: not supported", expected="gradients accumulated by the job itself",
                               got=f"{what}, which {does}",
                               fix="config.train.num_gradient_accumulation_steps(n) updates once in n runs")

    f.__name__, f.__doc__ = (what,
                             f"OneFlow's {what} {does}. Use config.train.num_gradient_accumulation_steps "
                             f"instead.")
    return f


repeat = _micro_batches("repeat", "gives a blob to several micro-batches")
pack = _micro_batches("pack", "joins the results of micro-batches")
unpack = _micro_batches("unpack", "cuts a batch into micro-batches")
acc = _micro_batches("acc", "adds up over micro-batches")

__all__ = ["acc", "amp_white_identity", "assign", "cast", "cast_to_static_shape", "concat", "constant",
           "constant_like", "constant_scalar", "dynamic_reshape", "elem_cnt", "expand_dims", "flatten",
           "identity", "identity_n", "masked_fill", "ones", "ones_like", "pack", "repeat", "reshape",
           "slice", "squeeze", "stack", "transpose", "unpack", "where", "zeros", "zeros_like"]
