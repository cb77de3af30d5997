"""Conversions of arrays and lists of arrays between the form of users and the form of programs."""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import bfloat16, float32
from flowedu.errors import UnsupportedError


def is_list(value) -> bool:
    return isinstance(value, TensorList)


def has_numbers(dtype) -> bool:
    """Whether values of this type can be shown: what NumPy has, and bfloat16."""
    return dtype.numpy is not None or dtype is bfloat16


def shown(value):
    """The value as NumPy can hold it: bfloat16 as float32."""
    return REGISTRY["cast"](value, dtype=float32) if not is_list(value) and value.dtype is bfloat16 else value


def check_returned(job: str, values) -> None:
    """NumPy can hold these returned values; UnsupportedError (NotImplementedError) otherwise."""
    for value in values:
        if not has_numbers(value.dtype):
            raise UnsupportedError(f"{job}: a {value.dtype.name} is returned", expected="blobs of numbers", got=repr(value),
                                   fix="flow.tensor_buffer_to_tensor, or flow.tensor_buffer_to_list_of_tensors, makes "
                                   "something that can be returned")


def fed(defs, values) -> list:
    """What belongs to each definition of a tree of them, in the order of blob.signature.leaves."""
    if isinstance(defs, ph.ArgBlobDef):
        return [values]
    if isinstance(defs, dict):
        return [x for k, d in defs.items() for x in fed(d, values[k])]
    return [x for d, v in zip(defs, values) for x in fed(d, v)]


def per_device(d: ph.ArgBlobDef, value) -> list:
    """An argument as one array, or TensorList, per device (of a fixed one: the whole)."""
    if isinstance(d, ph.FixedTensorDef):
        return [value]
    return [TensorList(v, d.dtype, len(d.shape)) for v in value] if d.is_tensor_list else value


def given_back(value) -> object:
    """What the caller gets of a value: an array of its own, or the list of a TensorList's arrays."""
    return value.arrays() if is_list(value) else np.array(value)


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    """The devices' arrays as one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
