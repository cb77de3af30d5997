"""Definitions of the arguments of a job function (an ArgBlobDef per array), and their checks.

In this file an argument is one array of exactly the given shape (FixedTensorDef, tp.Numpy). The
body of the job gets a blob instead. oneflow04/job/arguments.py adds containers and lists of arrays.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.values.blob import BlobDesc
from flowedu.core.values.dtype import as_dtype, dtype, float32
from flowedu.errors import values as errors

_uid = itertools.count()


class ArgBlobDef(BlobDesc):
    """Description of one array that a job takes as an argument.

    Args:
        shape: a tuple of ints above zero.
        dtype: element type; arrays of another dtype are cast at the call.
        batch_axis: the axis of the samples, which devices split (None: no such axis).
        distribute: layout on devices, an object with a `suffix` such as ":S0"; None: any layout.

    Attributes: those arguments; is_dynamic (the size may vary, up to `shape`); is_tensor_list;
    op_name ("Input_7"), blob_name ("out"), logical_blob_name, unique_name; numpy_dtype.
    """

    is_tensor_list = False
    blob_name = "out"

    def __init__(self, shape: tuple[int, ...], dtype: dtype = float32, batch_axis: int | None = 0,
                 *, distribute: Any = None):
        what = type(self).__name__
        check_shape_is_tuple(shape, what)
        for dim in shape:
            if type(dim) is not int or dim <= 0:
                raise errors.placeholder_axis(what, dim, shape)
        self.shape, self.dtype, self.distribute = shape, check_element_type(dtype, what), distribute
        self.batch_axis = normalize_batch_axis(batch_axis, len(shape), what)
        self.numpy_dtype = self.dtype.numpy
        self.op_name = f"Input_{next(_uid)}"

    def with_distribute(self, distribute: Any) -> ArgBlobDef:
        """Return a copy with a new op_name and this `distribute`."""
        if distribute is not None and not hasattr(distribute, "suffix"):
            raise errors.not_a_strategy(self, distribute)
        return type(self)(self.shape, self.dtype, self.batch_axis, distribute=distribute)

    def clone(self) -> ArgBlobDef:
        """Return a copy with a new op_name."""
        return self.with_distribute(self.distribute)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, {self.dtype.name})"


class FixedTensorDef(ArgBlobDef):
    """One array of exactly `shape`.

    Args:
        shape, dtype, batch_axis, distribute: as in ArgBlobDef.
    """

    def check(self, value: Any, where: str) -> np.ndarray:
        """Return `value` cast to `dtype`. If no cast is needed, return `value` itself.

        Raises: CheckError (an AssertionError) with text `where`; DTypeError if no cast is possible.
        """
        if self.fits(value):
            return value
        array = isinstance(value, np.ndarray)
        if not array or value.shape != self.shape:
            problem = "the shape does not fit" if array else "not a NumPy array"
            raise errors.wrong_argument(where, problem, self.dtype.name, self.shape, value)
        return cast(value, self, where)

    def fits(self, value: Any) -> bool:
        """Return True if `value` has the right type, shape and dtype."""
        return (type(value) is np.ndarray and value.shape == self.shape
                and value.dtype == self.numpy_dtype)


def check_arguments(name: str, parameters: tuple[str, ...], defs: tuple, args: tuple,
                    check: Callable = FixedTensorDef.check) -> list:
    """Check the number of arguments, and return check(definition, argument, where) for each."""
    if len(args) != len(defs):
        raise errors.wrong_number_of_arguments(name, defs, parameters, args)
    if all(type(d) is FixedTensorDef and d.fits(a) for d, a in zip(defs, args)):  # fast path
        return list(args)
    return [check(d, a, f"{name}: argument {i} ({p})")
            for i, (p, d, a) in enumerate(zip(parameters, defs, args), 1)]


def check_element_type(d: Any, what: str) -> dtype:
    """Return `d` as a dtype that a NumPy array can have."""
    d = as_dtype(d, f"{what}: dtype")
    if d.numpy is None:
        raise errors.no_numpy_array(what, d.name, d)
    return d


def check_shape_is_tuple(shape: Any, what: str) -> None:
    if type(shape) is not tuple:
        raise errors.shape_not_a_tuple(what, shape)


def normalize_batch_axis(axis: int | None, rank: int, what: str) -> int | None:
    """Return `axis` counted from the front, or None for None and for axis 0 of a scalar."""
    if axis is None or (rank == 0 and axis == 0):
        return None
    if type(axis) is not int or not -rank <= axis < rank:
        raise errors.batch_axis_range(what, rank, axis)
    return axis % rank


def cast(value: np.ndarray, defn: ArgBlobDef, where: str) -> np.ndarray:
    """Cast an array to the dtype of its definition."""
    if value.dtype == defn.numpy_dtype:
        return value
    if value.dtype.kind not in "biuf":
        raise errors.not_numbers(where, defn.dtype.name, value)
    return value.astype(defn.numpy_dtype)
