"""Between tensors, TensorBuffers and TensorLists. What users type, which checks what it is given, is oneflow04/buffers.py.

They are host ops: in a job they run in Python before the plan, since no plan can hold what has no fixed size.
"""
from __future__ import annotations

from math import prod

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.ops.host import define_host
from flowedu.core.values import dtype as dt
from flowedu.errors import ShapeError

tensor_to_buffer = define_host(
    "tensor_to_tensor_buffer(x, *, instance_dims) -> y", dtype=lambda: dt.tensor_buffer,
    shape=lambda x, instance_dims: x.shape[:x.ndim - instance_dims],
    host=lambda x, instance_dims: TensorBuffer.from_array(x, instance_dims))
buffer_to_tensor = define_host(
    "tensor_buffer_to_tensor(x, *, dtype, instance_shape) -> y", dtype=lambda dtype: dtype,
    shape=lambda x, instance_shape: x.shape + instance_shape,
    host=lambda x, dtype, instance_shape: x.to_array(dtype, instance_shape, "tensor_buffer_to_tensor"))


def check_one_each(what: str, x) -> None:
    """Raise ShapeError unless every tensor of a list is one sample: has a first axis of 1. (The rows of an array are.)"""
    bad = np.flatnonzero(x.shapes[:, 0] != 1) if isinstance(x, TensorList) else ()
    if len(bad):
        i = int(bad[0])
        raise ShapeError(f"{what}: tensor {i} of the list is not one sample", expected="a first axis of 1, such as "
                         f"{(1, *x[i].shape)}", got=str(x[i].shape), fix="x[None] puts an axis of 1 before the others")


def _to_buffer(x) -> TensorBuffer:
    check_one_each("tensor_list_to_tensor_buffer", x)
    return TensorBuffer([a[0] for a in x] if isinstance(x, TensorList) else x)


list_to_buffer = define_host("tensor_list_to_tensor_buffer(x) -> y", host=_to_buffer, shape=lambda x: x.shape[:1],
                             dtype=lambda: dt.tensor_buffer)


def _to_list(x: TensorBuffer, shape: tuple, dtype: dt.dtype) -> TensorList:
    what = "tensor_buffer_to_tensor_list"
    for i, a in enumerate(x.items):
        if a.ndim != len(shape):
            raise ShapeError(f"{what}: {x.where(i)} has another rank", expected=f"rank {len(shape)}, as shape={shape}",
                             got=f"rank {a.ndim}, {a.shape}", fix="give shape as many axes as the tensors have")
        if a.size > prod(shape):
            raise ShapeError(f"{what}: {x.where(i)} is larger than shape", got=f"{a.size} elements, {a.shape}",
                             expected=f"at most {prod(shape)} elements, {shape}",
                             fix="shape is the most a tensor may have: raise it")
    return TensorList([a[None] for a in x.items], dtype, rank=len(shape) + 1)


buffer_to_list = define_host(
    "tensor_buffer_to_tensor_list(x, *, shape, dtype) -> y", host=_to_list, dynamic=["y"], lists=["y"],
    shape=lambda x, shape: x.shape + shape, dtype=lambda dtype: dtype)
