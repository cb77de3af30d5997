"""Collation: conversion of a list of items to a batch."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu.core.values import dtype as dt
from flowedu.errors import CallError, ShapeError
from flowedu.tensor import Tensor, empty, from_numpy, tensor
from flowedu.tensor.shapes.join_and_pad import stack


def default_collate(batch: Sequence) -> Any:
    """Combine the items of a batch into one object. The type of the first item selects the conversion.

    | items | batch |
    |---|---|
    | tensors, arrays | one tensor, with a new first axis |
    | floats | a tensor of float64 |
    | bools, ints | a tensor of bool or int64, or of flow.get_default_dtype() if a later item is a float |
    | strings, bytes | unchanged |
    | dicts, named tuples | a dict or named tuple of batches |
    | tuples, lists | a list of batches |

    Args:
        batch: list of items.

    Raises:
        ShapeError (a RuntimeError): the items have different shapes or lengths.
        CallError (a TypeError): the items have an unsupported type.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise CallError(f"default_collate: batch must contain numbers; found an array of {first.dtype}",
                            expected="arrays of numbers", got=str(first.dtype),
                            fix="return str, or pass collate_fn")
        return _stack([from_numpy(_to_shareable(x)) for x in batch])
    if isinstance(first, (bool, int, float)):
        return _numbers(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        result = {k: default_collate([item[k] for item in batch]) for k in first}
        return _to_mapping(type(first), result)
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise ShapeError("default_collate: each element in list of batch should be of equal size",
                             expected=f"{len(first)} parts, as in the first item",
                             got=", ".join(str(len(x)) for x in batch[:9]),
                             fix="pass collate_fn, which may pad")
        parts = [default_collate(part) for part in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise CallError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                    "lists; found "
                    f"{type(first).__name__}", expected="such items", got=repr(first)[:80],
                    fix="convert them in the data set (an image: transforms.ToTensor()), or pass collate_fn")


def _numbers(batch: Sequence) -> Tensor:
    """Return numbers as a tensor with the dtype that PyTorch's collation chooses."""
    if isinstance(batch[0], float):
        return tensor(list(batch), dtype=dt.float64)
    if any(isinstance(x, float) for x in batch):
        return tensor(list(batch), dtype=dt.get_default_dtype())
    return tensor(list(batch), dtype=dt.bool_ if isinstance(batch[0], bool) else dt.int64)


def default_convert(data: Any) -> Any:
    """Convert arrays to tensors, also inside containers. DataLoader(batch_size=None) applies it to items.

    Args:
        data: item, or a nested container of items.
    """
    return _map_leaves(data, _convert_numbers)


def _convert_numbers(x: Any) -> Any:
    """Return an array of numbers as a tensor, and other values as they are."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "SUO":
        return from_numpy(_to_shareable(x))
    return x


def pinned(batch: Any) -> Any:
    """Return the batch with its tensors, and objects with a method pin_memory(), in pinned memory."""
    return _map_leaves(batch, lambda x: x.pin_memory() if hasattr(x, "pin_memory") else x)


def _map_leaves(data: Any, one: Callable[[Any], Any]) -> Any:
    """Apply `one` to everything in a nested dict, list, or tuple."""
    if isinstance(data, Mapping):
        return _to_mapping(type(data), {k: _map_leaves(v, one) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[_map_leaves(v, one) for v in data])
    if type(data) in (list, tuple):
        return type(data)(_map_leaves(v, one) for v in data)
    return one(data)


def _to_mapping(kind: type, items: dict) -> Any:
    try:
        return items if kind is dict else kind(items)
    except TypeError:                                # the mapping type's constructor does not take a dict
        return items


def _to_shareable(a: Any) -> np.ndarray:
    """Return an array that a tensor can share: native byte order, no negative strides."""
    a = np.asarray(a)
    a = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    return a.copy() if any(s < 0 or s % a.itemsize for s in a.strides) else a


def _stack(items: Sequence[Tensor]) -> Tensor:
    first = items[0]
    shape, kind = tuple(first.shape), first.dtype
    for i, x in enumerate(items):
        if tuple(x.shape) != shape or x.dtype is not kind:
            raise ShapeError("default_collate: stack expects each tensor to be equal size, but got "
                             f"{list(shape)} at entry 0 and {list(x.shape)} at entry {i}",
                             expected=f"{kind.name}{list(shape)}, as item 0", got=f"item {i}: {x.spec}",
                             fix="crop or pad the items, or pass collate_fn")
    if kind.numpy is None or any(x.requires_grad for x in items):
        return stack(list(items))
    out = empty(len(items), *shape, dtype=kind)
    rows = out.numpy()
    for i, x in enumerate(items):
        rows[i] = x.numpy()
    return out
