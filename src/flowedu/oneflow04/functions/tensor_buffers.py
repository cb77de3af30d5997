"""Ops that convert between tensors, TensorBuffers, and TensorLists, with OneFlow 0.4's names.

OneFlow has the ops on tensor lists up to version 0.3.4. All ops of this module are host ops. In a job they
run in Python before the plan, because a plan cannot hold values whose size varies.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.values import dtype as dt
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.errors.buffers import wrong_dtype
from flowedu.ops.front import front
from flowedu.ops.host import define_host


# ---- checks of arguments
def need_value(what: str, x) -> Spec:
    """Return the Spec of a tensor, blob, TensorBuffer, or TensorList. Raise DTypeError for other types."""
    if isinstance(x, BlobDef):
        return Spec(x.shape, x.dtype)
    if not hasattr(x, "spec"):
        raise DTypeError(f"{what}: the input is a {type(x).__name__}",
                         expected="a blob in a job; else a tensor, TensorBuffer or TensorList",
                         got=type(x).__name__,
                         fix="flow.tensor(x) for an array, flow.TensorBuffer([...]) for arrays of different "
                         "shapes")
    return x.spec


def need_buffer(what: str, x, rank: int | None = None) -> Spec:
    """Return the Spec of a TensorBuffer.

    Raise DTypeError for other types, ShapeError if it does not have `rank` axes.
    """
    spec = need_value(what, x)
    if spec.dtype is not dt.tensor_buffer:
        raise DTypeError(f"{what}: the input is not a TensorBuffer", expected="dtype flow.tensor_buffer",
                         got=str(spec),
                         fix="flow.tensor_to_tensor_buffer(x, instance_dims) or "
                         "flow.tensor_list_to_tensor_buffer(x) makes one")
    if rank not in (None, len(spec.shape)):
        raise ShapeError(f"{what}: the TensorBuffer has {len(spec.shape)} axes",
                         expected="one axis that counts the tensors: shape (N,)", got=str(spec),
                         fix="make it of one axis")
    return spec


def sizes(what: str, name: str, shape) -> tuple[int, ...]:
    """Return `shape` as a tuple of ints. Raise ArgumentError unless all are at least 1."""
    if (not isinstance(shape, (list, tuple)) or not all(isinstance(n, (int, np.integer)) and n > 0
                                                        for n in shape)):
        raise ArgumentError(f"{what}: {name} is not a shape", expected="a list or tuple of ints > 0",
                            got=repr(shape), fix=f"{name}=(100, 100), say")
    return tuple(map(int, shape))


def number_type(what: str, name: str, d) -> dt.dtype:
    """Return `d` as a dtype that arrays can have. Raise DTypeError for other dtypes."""
    d = dt.as_dtype(d, f"{what}: {name}")
    if d.numpy is None:
        raise DTypeError(f"{what}: {name} is not a numeric dtype", expected="flow.float32, flow.uint8, ...",
                         got=d.name, fix=f"{name}=flow.float32, say")
    return d


# ---- tensors and buffers
tensor_to_buffer = define_host(
    "tensor_to_tensor_buffer(x, *, instance_dims) -> y", dtype=lambda: dt.tensor_buffer,
    shape=lambda x, instance_dims: x.shape[:x.ndim - instance_dims],
    host=lambda x, instance_dims: TensorBuffer.from_array(x, instance_dims))
buffer_to_tensor = define_host(
    "tensor_buffer_to_tensor(x, *, dtype, instance_shape) -> y", dtype=lambda dtype: dtype,
    shape=lambda x, instance_shape: x.shape + instance_shape,
    host=lambda x, dtype, instance_shape: x.to_array(dtype, instance_shape, "tensor_buffer_to_tensor"))


@front("TensorToTensorBuffer")
def tensor_to_tensor_buffer(x, instance_dims: int):
    """Pack the last axes of a tensor into a TensorBuffer.

    Args:
        x: a tensor or blob.
        instance_dims: the number of axes of each buffer, below the rank of `x`.

    Returns: a TensorBuffer of shape `x.shape[:-instance_dims]`.
    """
    rank = len(need_value("tensor_to_tensor_buffer", x).shape)
    if type(instance_dims) is not int or not 0 <= instance_dims < rank:
        raise ArgumentError("tensor_to_tensor_buffer: instance_dims is out of range", got=repr(instance_dims),
                            expected=f"an int below {rank}, the rank of x",
                            fix="at least one axis must count the buffers")
    return tensor_to_buffer(x, instance_dims=instance_dims)


@front("TensorBufferToTensor")
def tensor_buffer_to_tensor(x, dtype: dt.dtype, instance_shape: Sequence[int]):
    """Stack the buffers of a TensorBuffer into one tensor.

    Args:
        x: a TensorBuffer whose buffers all have the shape `instance_shape` and the dtype `dtype`.
        dtype: the dtype of the result.
        instance_shape: the shape of each buffer.

    Returns: a tensor of shape `x.shape + instance_shape`.
    """
    what = "tensor_buffer_to_tensor"
    need_buffer(what, x)
    return buffer_to_tensor(x, dtype=number_type(what, "dtype", dtype),
                            instance_shape=sizes(what, "instance_shape", instance_shape))


_FILLED = (dt.int32, dt.int64, dt.float32, dt.float64)
_gen = define_host("gen_tensor_buffer(*, shape, shape_list, value_list, data_type, dynamic_out=False) -> y",
                   shape=lambda shape: shape, dtype=lambda: dt.tensor_buffer, dynamic=["y"],
                   host=lambda shape, shape_list, value_list, data_type: TensorBuffer(
                       [np.full(s, v, data_type.numpy) for s, v in zip(shape_list, value_list)], shape))


@front("GenTensorBuffer")
def gen_tensor_buffer(shape: Sequence[int], shape_list: Sequence[Sequence[int]], value_list: Sequence[float],
                      data_type: dt.dtype = dt.float32, dynamic_out: bool = False):
    """Return a TensorBuffer of constants.

    Args:
        shape: the shape of the TensorBuffer.
        shape_list: the shape of each buffer, as many as the product of `shape`.
        value_list: the value that fills each buffer, as many as the product of `shape`.
        data_type: int32, int64, float32, or float64.
        dynamic_out: treat the result as dynamic.
    """
    what = "gen_tensor_buffer"
    shape, data_type = sizes(what, "shape", shape), dt.as_dtype(data_type, f"{what}: data_type")
    if not prod(shape) == len(shape_list) == len(value_list):
        raise ArgumentError(f"{what}: one shape and one value per buffer are needed",
                            expected=f"{prod(shape)} of each, for the shape {shape}",
                            got=f"{len(shape_list)} shapes and {len(value_list)} values",
                            fix="make shape_list and value_list as long as the product of shape")
    if data_type not in _FILLED:
        raise DTypeError(f"{what}: data_type is not supported", expected=", ".join(d.name for d in _FILLED),
                         got=data_type.name, fix="leave it out for float32")
    return _gen(shape=shape, shape_list=tuple(sizes(what, f"shape_list[{i}]", s)
                                              for i, s in enumerate(shape_list)),
                value_list=tuple(value_list), data_type=data_type, dynamic_out=bool(dynamic_out))


def _item(x: TensorBuffer, index: int, out_shape: tuple, out_dtype: dt.dtype,
          dynamic_out: bool) -> np.ndarray:
    what, a = "tensor_buffer_to_list_of_tensors", x.items[index]
    if a.dtype != out_dtype.numpy:
        raise wrong_dtype(what, x.where(index), out_dtype, a.dtype)
    if a.size > prod(out_shape) or not dynamic_out and a.size != prod(out_shape):
        raise ShapeError(f"{what}: {x.where(index)} does not fit into out_shape",
                         got=f"{a.size} elements, {a.shape}",
                         expected=f"{'at most' if dynamic_out else 'just'} {prod(out_shape)} elements, "
                         f"{out_shape}",
                         fix="raise out_shape" if dynamic_out else "dynamic_out=True keeps the real shapes")
    return a.copy() if dynamic_out else a.reshape(out_shape).copy()


_take = define_host("tensor_buffer_item(x, *, index, out_shape, out_dtype, dynamic_out) -> y", host=_item,
                    dynamic=["y"], shape=lambda out_shape: out_shape, dtype=lambda out_dtype: out_dtype)


@front("TensorBufferToListOfTensors")
def tensor_buffer_to_list_of_tensors(x, out_shape: Sequence[int], out_dtype: dt.dtype,
                                     dynamic_out: bool = False):
    """Return each buffer of a TensorBuffer as a blob.

    Args:
        x: a TensorBuffer.
        out_shape: the shape of each blob. Each buffer must have as many elements.
        out_dtype: the dtype of the buffers.
        dynamic_out: keep the shape of each buffer, which may then have fewer elements than `out_shape`. The
            blobs are dynamic (tp.ListNumpy).

    Returns: a tuple of `prod(x.shape)` blobs.
    """
    what = "tensor_buffer_to_list_of_tensors"
    count = need_buffer(what, x).size
    attrs = {"out_shape": sizes(what, "out_shape", out_shape),
             "out_dtype": number_type(what, "out_dtype", out_dtype), "dynamic_out": bool(dynamic_out)}
    return tuple(_take(x, index=i, **attrs) for i in range(count))


# ---- lists
def need_list(what: str, x, fix: str) -> Spec:
    """Return the Spec of a tensor list, or of an array whose rows form one.

    Raise DTypeError for other types.
    """
    spec = need_value(what, x)
    if spec.dtype.numpy is None or not spec.shape:
        raise DTypeError(f"{what}: the input is not a tensor list",
                         expected="a tp.ListListNumpy of a job, or a flow.TensorList", got=str(spec), fix=fix)
    return spec


def check_one_each(what: str, x) -> None:
    """Raise ShapeError unless the first axis of every tensor of a list has size 1.

    The rows of an array count as samples.
    """
    bad: np.ndarray | tuple[int, ...] = ()
    if isinstance(x, TensorList):
        bad = np.flatnonzero(x.shapes[:, 0] != 1)
    if len(bad):
        i = int(bad[0])
        raise ShapeError(f"{what}: tensor {i} of the list is not one sample",
                         expected="a first axis of 1, such as "
                         f"{(1, *x[i].shape)}", got=str(x[i].shape),
                         fix="x[None] puts an axis of 1 before the others")


def _to_buffer(x) -> TensorBuffer:
    check_one_each("tensor_list_to_tensor_buffer", x)
    return TensorBuffer([a[0] for a in x] if isinstance(x, TensorList) else x)


_list_to_buffer = define_host("tensor_list_to_tensor_buffer(x) -> y", host=_to_buffer,
                              shape=lambda x: x.shape[:1], dtype=lambda: dt.tensor_buffer)


@front("TensorListToBuffer")
def tensor_list_to_tensor_buffer(input):
    """Convert a tensor list to a TensorBuffer.

    Args:
        input: a list of N tensors of shape (1, ...).

    Returns: a TensorBuffer of shape (N,). The first axes of size 1 are removed.
    """
    need_list("tensor_list_to_tensor_buffer", input, "pass a TensorBuffer on as it is")
    return _list_to_buffer(input)


def _to_list(x: TensorBuffer, shape: tuple, dtype: dt.dtype) -> TensorList:
    what = "tensor_buffer_to_tensor_list"
    for i, a in enumerate(x.items):
        if a.ndim != len(shape):
            raise ShapeError(f"{what}: {x.where(i)} has another rank",
                             expected=f"rank {len(shape)}, as shape={shape}",
                             got=f"rank {a.ndim}, {a.shape}",
                             fix="give shape as many axes as the tensors have")
        if a.size > prod(shape):
            raise ShapeError(f"{what}: {x.where(i)} is larger than shape",
                             got=f"{a.size} elements, {a.shape}",
                             expected=f"at most {prod(shape)} elements, {shape}",
                             fix="shape is the most a tensor may have: raise it")
    return TensorList([a[None] for a in x.items], dtype, rank=len(shape) + 1)


_buffer_to_list = define_host(
    "tensor_buffer_to_tensor_list(x, *, shape, dtype) -> y", host=_to_list, dynamic=["y"], lists=["y"],
    shape=lambda x, shape: x.shape + shape, dtype=lambda dtype: dtype)


@front("TensorBufferToList")
def tensor_buffer_to_tensor_list(input, shape: Sequence[int], dtype: dt.dtype):
    """Convert a TensorBuffer to a tensor list.

    Args:
        input: a TensorBuffer of shape (N,).
        shape: the largest tensor. All tensors have its rank and at most as many elements.
        dtype: the dtype that the tensors are cast to.

    Returns: N tensors of shape (1, ...) in one contiguous buffer.
    """
    what = "tensor_buffer_to_tensor_list"
    need_buffer(what, input, rank=1)
    return _buffer_to_list(input, shape=sizes(what, "shape", shape), dtype=number_type(what, "dtype", dtype))


def _list_item(x, index: int) -> np.ndarray:
    check_one_each("tensor_list_split", x)
    if index >= len(x):
        raise ShapeError("tensor_list_split: the list has fewer tensors than outputs",
                         expected=f"{index + 1} or more, the first axis of the placeholder", got=str(len(x)),
                         fix="feed as many as the placeholder says")
    return (x[index][0] if isinstance(x, TensorList) else x[index]).copy()


_pick = define_host("tensor_list_item(x, *, index) -> y", shape=lambda x: x.shape[1:],
                    dtype=lambda x: x.dtype, host=_list_item, dynamic=["y"])


@front("TensorListSplit")
def tensor_list_split(input_tensor_list):
    """Split a tensor list into dynamic blobs.

    Args:
        input_tensor_list: a list of N tensors of shape (1, ...).

    Returns: a tuple of N blobs without the first axis.
    """
    spec = need_list("tensor_list_split", input_tensor_list,
                     "flow.tensor_buffer_to_list_of_tensors splits a TensorBuffer")
    return tuple(_pick(input_tensor_list, index=i) for i in range(spec.shape[0]))


__all__ = ["gen_tensor_buffer", "tensor_buffer_to_list_of_tensors", "tensor_buffer_to_tensor",
           "tensor_buffer_to_tensor_list", "tensor_list_split", "tensor_list_to_tensor_buffer",
           "tensor_to_tensor_buffer"]
