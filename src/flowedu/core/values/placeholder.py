"""Definitions of the arguments of a job function, one ArgBlobDef per array; the check of each call.

Here an argument is one array of exactly the given shape: FixedTensorDef, tp.Numpy. The body of the
job gets a blob, not a definition. (oneflow04/job/arguments.py adds containers and lists of arrays.)
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.values.blob import BlobDesc
from flowedu.core.values.dtype import as_dtype, dtype, float32
from flowedu.errors import CheckError, DTypeError, UnsupportedError, told_value

_uid = itertools.count()


class ArgBlobDef(BlobDesc):
    """Description of one array that a job takes as an argument.

    Args:
        shape: a tuple of ints above zero.
        dtype: element type; arrays of another one are cast at the call.
        batch_axis: the axis of the samples, which devices split (None: there is no such axis).
        distribute: how devices share it, an object with a `suffix` such as ":S0"; None: any way.

    Attributes: those arguments; is_dynamic (the size may vary from call to call, up to `shape`); is_tensor_list;
    op_name ("Input_7"), blob_name ("out"), logical_blob_name, unique_name; numpy_dtype.
    """

    is_tensor_list = False
    blob_name = "out"

    def __init__(self, shape: tuple[int, ...], dtype: dtype = float32, batch_axis: int | None = 0, *, distribute=None):
        what = type(self).__name__
        check_shape_is_tuple(shape, what)
        for dim in shape:
            if type(dim) is not int or dim <= 0:
                raise CheckError(f"{what}: every axis of the shape must be an int above zero",
                                 expected="Python ints > 0", got=f"{dim!r} ({type(dim).__name__}) in {shape}",
                                 fix="write int(n) for a NumPy integer" if isinstance(dim, np.integer) else
                                     "write the sizes the job is to be fed with; none can be left open")
        self.shape, self.dtype, self.distribute = shape, check_element_type(dtype, what), distribute
        self.batch_axis = normalize_batch_axis(batch_axis, len(shape), what)
        self.numpy_dtype = self.dtype.numpy
        self.op_name = f"Input_{next(_uid)}"

    def with_distribute(self, distribute: Any) -> ArgBlobDef:
        """Return a copy with a new op_name and this `distribute`."""
        if distribute is not None and not hasattr(distribute, "suffix"):
            raise CheckError(f"{type(self).__name__}.with_distribute: not a distribute strategy", got=repr(distribute),
                             expected="flow.distribute.split(axis), broadcast() or auto()", fix="flow.distribute.split(0)")
        return type(self)(self.shape, self.dtype, self.batch_axis, distribute=distribute)

    def clone(self) -> ArgBlobDef:
        """Return a copy with a new op_name."""
        return self.with_distribute(self.distribute)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, {self.dtype.name})"


class FixedTensorDef(ArgBlobDef):
    """One array of exactly `shape`."""

    def check(self, value: Any, where: str) -> np.ndarray:
        """Return `value` cast to `dtype`, or `value` itself if it fits: copy it before storing it.

        Raises: CheckError (an AssertionError) with the text `where`; DTypeError: no numbers.
        """
        if self.fits(value):
            return value
        array = isinstance(value, np.ndarray)
        if not array or value.shape != self.shape:
            problem = "the shape does not fit" if array else "not a NumPy array"
            raise CheckError(f"{where}: {problem}", expected=f"a {self.dtype.name} array of shape {self.shape}",
                             got=told_value(value), fix="pass such an array")
        return cast(value, self, where)

    def fits(self, value: Any) -> bool:
        """Return True if `value` has the right type, shape and dtype."""
        return type(value) is np.ndarray and value.shape == self.shape and value.dtype == self.numpy_dtype


def check_arguments(name: str, parameters: tuple[str, ...], defs: tuple, args: tuple,
                    check: Callable = FixedTensorDef.check) -> list:
    """Check the number of arguments; return check(definition, argument, where) of each."""
    if len(args) != len(defs):
        raise CheckError(f"{name}: wrong number of arguments", expected=f"{len(defs)}: ({', '.join(parameters)})",
                         got=str(len(args)), fix="a job takes every placeholder, by position")
    if all(type(d) is FixedTensorDef and d.fits(a) for d, a in zip(defs, args)):  # no texts
        return list(args)
    return [check(d, a, f"{name}: argument {i} ({p})") for i, (p, d, a) in enumerate(zip(parameters, defs, args), 1)]


def check_element_type(d: Any, what: str) -> dtype:
    """Return `d` as a dtype that a NumPy array can have."""
    d = as_dtype(d, f"{what}: dtype")
    if d.numpy is None:
        raise UnsupportedError(f"{what}: {d.name} has no NumPy array", expected="a number type such as flow.float32",
                               got=repr(d), fix="read such data inside the job with flow.data.ofrecord_reader")
    return d


def check_shape_is_tuple(shape: Any, what: str) -> None:
    if type(shape) is not tuple:
        fix = "write (100, 784), say"
        if isinstance(shape, (list, tuple, np.ndarray)):
            fix = f"write {tuple(shape)}"
        elif isinstance(shape, int):
            fix = f"write ({shape},): the comma makes the tuple"
        raise CheckError(f"{what}: the shape must be a tuple", expected="a tuple of ints", got=told_value(shape), fix=fix)


def normalize_batch_axis(axis: int | None, rank: int, what: str) -> int | None:
    """Return `axis` counted from the front, or None for None and for axis 0 of a scalar."""
    if axis is None or (rank == 0 and axis == 0):
        return None
    if type(axis) is not int or not -rank <= axis < rank:
        raise CheckError(f"{what}: batch_axis is out of range", expected=f"None or an int in [{-rank}, {rank - 1}]",
                         got=repr(axis), fix="leave it out: axis 0 holds the samples")
    return axis % rank


def cast(value: np.ndarray, defn: ArgBlobDef, where: str) -> np.ndarray:
    """Cast an array to the dtype of its definition."""
    if value.dtype == defn.numpy_dtype:
        return value
    if value.dtype.kind not in "biuf":
        raise DTypeError(f"{where}: the elements are not numbers", expected=f"numbers, to be cast to {defn.dtype.name}",
                         got=told_value(value), fix="convert them first, for example x.astype(np.float32)")
    return value.astype(defn.numpy_dtype)
