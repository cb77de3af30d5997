"""What a job function takes: one ArgBlobDef per array, and the check of what a call brings.

Here that is one array of exactly this shape: FixedTensorDef, tp.Numpy. (Containers of arrays, lists of them per device, and
advice for a call that does not fit: oneflow04/job/arguments.py.) The body never sees a definition: it gets a blob.
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
    """Description of one array that a job is fed with.

    Args:
        shape: a tuple of ints above zero.
        dtype: element type; arrays of another one are cast at the call.
        batch_axis: the axis the samples lie along, and that devices split; None for none.
        distribute: how devices share it; an object with `suffix`, such as ":S0" (None: nothing asked for).

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
        self.shape, self.dtype, self.distribute = shape, element_type(dtype, what), distribute
        self.batch_axis = normal_batch_axis(batch_axis, len(shape), what)
        self.numpy_dtype = self.dtype.numpy
        self.op_name = f"Input_{next(_uid)}"

    def with_distribute(self, distribute: Any) -> ArgBlobDef:
        """A copy, with a name of its own, that asks for this distribution."""
        if distribute is not None and not hasattr(distribute, "suffix"):
            raise CheckError(f"{type(self).__name__}.with_distribute: not a distribute strategy", got=repr(distribute),
                             expected="flow.distribute.split(axis), broadcast() or auto()", fix="flow.distribute.split(0)")
        return type(self)(self.shape, self.dtype, self.batch_axis, distribute=distribute)

    def clone(self) -> ArgBlobDef:
        """A copy with a name of its own."""
        return self.with_distribute(self.distribute)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, {self.dtype.name})"


class FixedTensorDef(ArgBlobDef):
    """One array of exactly `shape`."""

    def check(self, value: Any, where: str) -> np.ndarray:
        """The array, cast to `dtype`; the caller's own where it fits as it is, so copy before keeping it.

        Raises: CheckError (an AssertionError), whose text begins with `where`; DTypeError: no numbers.
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
        """Whether it is such an array, and nothing has to be cast."""
        return type(value) is np.ndarray and value.shape == self.shape and value.dtype == self.numpy_dtype


def check_arguments(name: str, parameters: tuple[str, ...], defs: tuple, args: tuple, check: Callable = FixedTensorDef.check
                    ) -> list:
    """All arguments of one call of job `name`: their number, then each with check(definition, argument, where)."""
    if len(args) != len(defs):
        raise CheckError(f"{name}: wrong number of arguments", expected=f"{len(defs)}: ({', '.join(parameters)})",
                         got=str(len(args)), fix="a job takes every placeholder, by position")
    if all(type(d) is FixedTensorDef and d.fits(a) for d, a in zip(defs, args)):        # nearly always: without the texts
        return list(args)
    return [check(d, a, f"{name}: argument {i} ({p})") for i, (p, d, a) in enumerate(zip(parameters, defs, args), 1)]


def element_type(d: Any, what: str) -> dtype:
    """`d` as a dtype that an array can hold."""
    d = as_dtype(d, f"{what}: dtype")
    if d.numpy is None:
        raise UnsupportedError(f"{what}: {d.name} has no NumPy array", expected="a number type such as flow.float32",
                               got=repr(d), fix="read such data inside the job with flow.data.ofrecord_reader")
    return d


def check_shape_is_tuple(shape: Any, what: str) -> None:
    if type(shape) is not tuple:
        fix = f"write {tuple(shape)}" if isinstance(shape, (list, tuple, np.ndarray)) else \
            f"write ({shape},): the comma makes the tuple" if isinstance(shape, int) else "write (100, 784), say"
        raise CheckError(f"{what}: the shape must be a tuple", expected="a tuple of ints", got=told_value(shape), fix=fix)


def normal_batch_axis(axis: int | None, rank: int, what: str) -> int | None:
    """`axis` counted from the front; None stays None, and so does axis 0 of a scalar."""
    if axis is None or (rank == 0 and axis == 0):
        return None
    if type(axis) is not int or not -rank <= axis < rank:
        raise CheckError(f"{what}: batch_axis is out of range", expected=f"None or an int in [{-rank}, {rank - 1}]",
                         got=repr(axis), fix="leave it out: axis 0 holds the samples")
    return axis % rank


def cast(value: np.ndarray, defn: ArgBlobDef, where: str) -> np.ndarray:
    """The array, as the element type of its definition."""
    if value.dtype == defn.numpy_dtype:
        return value
    if value.dtype.kind not in "biuf":
        raise DTypeError(f"{where}: the elements are not numbers", expected=f"numbers, to be cast to {defn.dtype.name}",
                         got=told_value(value), fix="convert them first, for example x.astype(np.float32)")
    return value.astype(defn.numpy_dtype)
