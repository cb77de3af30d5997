"""Conversions of arrays and lists of arrays between the form of users and the form of programs."""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.ops.view import cast
from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import bfloat16, float32
from flowedu.errors import UnsupportedError


def is_list(value) -> bool:
    return isinstance(value, TensorList)


def has_numbers(dtype) -> bool:
    """Return True if NumPy can hold values of this dtype, or if it is bfloat16."""
    return dtype.numpy is not None or dtype is bfloat16


def as_numpy_dtype(value):
    """Return the value in a dtype that NumPy has: bfloat16 as float32."""
    return cast(value, dtype=float32) if not is_list(value) and value.dtype is bfloat16 else value


def check_returned(job: str, values) -> None:
    """Raise UnsupportedError (a NotImplementedError) unless NumPy can hold the returned values."""
    for value in values:
        if not has_numbers(value.dtype):
            raise UnsupportedError(f"{job}: a {value.dtype.name} is returned", expected="numeric blobs",
                                   got=repr(value),
                                   fix="flow.tensor_buffer_to_tensor, or "
                                   "flow.tensor_buffer_to_list_of_tensors, makes something that can be "
                                   "returned")


def flatten_values(defs, values) -> list:
    """Return the value of each definition in a tree, in the order of core/values/signature.py:leaves."""
    if isinstance(defs, ph.ArgBlobDef):
        return [values]
    if isinstance(defs, dict):
        return [x for k, d in defs.items() for x in flatten_values(d, values[k])]
    return [x for d, v in zip(defs, values) for x in flatten_values(d, v)]


def split_per_device(d: ph.ArgBlobDef, value) -> list:
    """Return an argument as one array, or TensorList, per device; a fixed argument is one array."""
    if isinstance(d, ph.FixedTensorDef):
        return [value]
    return [TensorList(v, d.dtype, len(d.shape)) for v in value] if d.is_tensor_list else value


def copy_for_caller(value) -> object:
    """Return a value for the caller: a copy of an array, or the list of a TensorList's arrays."""
    return value.arrays() if is_list(value) else np.array(value)


def join_devices(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the arrays of all devices as one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
