"""What a job function takes: one ArgBlobDef per array, and the check of what a call brings.

    FixedTensorDef        tp.Numpy          one array of exactly this shape; the whole batch
    MirroredTensorDef     tp.ListNumpy      one array per device, each at most this large
    MirroredTensorListDef tp.ListListNumpy  per device a list of arrays, together at most this large

A job has one tree of definitions per parameter: a definition, or a tuple, list or dict of trees. Inside the job the
body never sees a definition: it gets a blob.
"""
from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np

from flowedu.core.values.blob import BlobDesc
from flowedu.core.values.dtype import as_dtype, dtype, float32
from flowedu.errors import CheckError, DTypeError, UnsupportedError

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

    is_dynamic = False
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

    @property
    def logical_blob_name(self) -> str:
        return f"{self.op_name}/{self.blob_name}"

    @property
    def unique_name(self) -> str:
        return self.logical_blob_name + getattr(self.distribute, "suffix", "")

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

    def check(self, value: Any, where: str, devices: int = 1) -> np.ndarray:
        if type(value) is np.ndarray and value.shape == self.shape and value.dtype == self.numpy_dtype:
            return value
        if not isinstance(value, np.ndarray):
            raise CheckError(f"{where}: not a NumPy array", expected=self._wanted(), got=describe(value),
                             fix=_array_advice(value))
        if value.shape != self.shape:
            raise CheckError(f"{where}: the shape does not fit", expected=self._wanted(), got=describe(value),
                             fix=_shape_advice(self.shape, value.shape))
        return _cast(value, self, where)

    def _wanted(self) -> str:
        return f"a {self.dtype.name} array of shape {self.shape}"


class MirroredTensorDef(ArgBlobDef):
    """One array per device; each may be smaller than `shape` but has its rank."""

    is_dynamic = True

    def check(self, value: Any, where: str, devices: int = 1) -> list[np.ndarray]:
        _check_per_device(value, where, devices, f"a list of {devices} {self.dtype.name} array(s) of rank "
                                                 f"{len(self.shape)}, one per device, each at most {self.shape}")
        return [self._one(v, f"{where}, device {i}") for i, v in enumerate(value)]

    def _one(self, value: Any, where: str) -> np.ndarray:
        _check_piece(value, self, where)
        if value.size > prod(self.shape):
            raise CheckError(f"{where}: the array is larger than the placeholder",
                             expected=f"at most {prod(self.shape)} elements, {self.shape}", got=describe(value),
                             fix="the placeholder's shape is the largest a device may get: raise it, or feed less")
        return _cast(value, self, where)


class MirroredTensorListDef(ArgBlobDef):
    """Per device a list of arrays of the rank of `shape`, together at most as large."""

    is_dynamic = True
    is_tensor_list = True

    def check(self, value: Any, where: str, devices: int = 1) -> list[list[np.ndarray]]:
        _check_per_device(value, where, devices, f"a list of {devices} list(s) of {self.dtype.name} arrays, "
                                                 f"one list per device")
        return [self._one_list(v, f"{where}, device {i}") for i, v in enumerate(value)]

    def _one_list(self, value: Any, where: str) -> list[np.ndarray]:
        if type(value) is not list:
            raise CheckError(f"{where}: not a list", expected=f"a list of {self.dtype.name} arrays",
                             got=describe(value), fix="one list per device: job([[a, b, c]]) for one device")
        for i, v in enumerate(value):
            _check_piece(v, self, f"{where}, array {i}")
        if sum(v.size for v in value) > prod(self.shape):
            raise CheckError(f"{where}: the arrays are together larger than the placeholder",
                             expected=f"at most {prod(self.shape)} elements, {self.shape}",
                             got=f"{sum(v.size for v in value)} elements in {len(value)} arrays",
                             fix="the placeholder's shape is the largest a device may get: raise it, or feed less")
        return [_cast(v, self, f"{where}, array {i}") for i, v in enumerate(value)]


def check_argument(defn: Any, value: Any, where: str, devices: int = 1) -> Any:
    """`value` as `defn` wants it, or an error that says what to change.

    Args:
        defn: a definition, or a tuple, list or dict of trees of them.
        value: what the caller passed.
        where: starts the error message: "train_job: argument 1 (images)".
        devices: how many arrays a ListNumpy takes.

    Returns: the array, cast to the definition's dtype; the caller's own array where it fits as it is, so copy before
    keeping it. A list (of lists) of arrays for the mirrored definitions; the containers of `defn` around them.

    Raises: CheckError (an AssertionError); DTypeError for arrays that are not numbers.
    """
    if isinstance(defn, ArgBlobDef):
        return defn.check(value, where, devices)
    if isinstance(defn, dict):
        if not isinstance(value, dict) or value.keys() != defn.keys():
            raise CheckError(f"{where}: the dict does not fit", expected=f"a dict with keys {sorted(defn)}",
                             got=f"keys {sorted(value, key=str)}" if isinstance(value, dict) else describe(value),
                             fix="pass a dict with these keys")
        return {k: check_argument(d, value[k], f"{where}[{k!r}]", devices) for k, d in defn.items()}
    if not isinstance(value, (list, tuple)) or len(value) != len(defn):
        raise CheckError(f"{where}: a tuple that does not fit", expected=f"a tuple of {len(defn)}", got=describe(value),
                         fix=f"pass ({', '.join('abcdefgh'[:len(defn)])},) as one argument")
    return type(defn)(check_argument(d, v, f"{where}[{i}]", devices) for i, (d, v) in enumerate(zip(defn, value)))


def check_arguments(name: str, parameters: tuple[str, ...], defs: tuple, args: tuple, devices: int = 1) -> list:
    """All arguments of one call of job `name`: their number, then each with `check_argument`."""
    if len(args) != len(defs):
        raise CheckError(f"{name}: wrong number of arguments", expected=f"{len(defs)}: ({', '.join(parameters)})",
                         got=str(len(args)), fix="a job takes every placeholder, by position")
    for d, a in zip(defs, args):  # nearly always everything fits: look before building the texts
        if type(d) is not FixedTensorDef or type(a) is not np.ndarray or a.shape != d.shape or a.dtype != d.numpy_dtype:
            break
    else:
        return list(args)
    try:
        return [check_argument(d, a, f"{name}: argument {i} ({p})", devices)
                for i, (p, d, a) in enumerate(zip(parameters, defs, args), 1)]
    except CheckError as e:
        if swapped := _swapped(parameters, defs, args, devices):
            raise CheckError(e.problem, expected=e.expected, got=e.got, fix=swapped, at=e.at) from None
        raise


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
        raise CheckError(f"{what}: the shape must be a tuple", expected="a tuple of ints", got=describe(shape), fix=fix)


def normal_batch_axis(axis: int | None, rank: int, what: str) -> int | None:
    """`axis` counted from the front; None stays None, and so does axis 0 of a scalar."""
    if axis is None or (rank == 0 and axis == 0):
        return None
    if type(axis) is not int or not -rank <= axis < rank:
        raise CheckError(f"{what}: batch_axis is out of range", expected=f"None or an int in [{-rank}, {rank - 1}]",
                         got=repr(axis), fix="leave it out: axis 0 holds the samples")
    return axis % rank


def describe(value: Any) -> str:
    """A value in a few words: "float64 array of shape (28, 784)", "a list of 3", "the int 5"."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} array of shape {value.shape}"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (bool, int, float, str, np.generic)):
        return f"the {type(value).__name__} {value!r}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"an object of type {type(value).__module__}.{type(value).__name__}"


def _cast(value: np.ndarray, defn: ArgBlobDef, where: str) -> np.ndarray:
    if value.dtype == defn.numpy_dtype:
        return value
    if value.dtype.kind not in "biuf":
        raise DTypeError(f"{where}: the elements are not numbers", expected=f"numbers, to be cast to {defn.dtype.name}",
                         got=describe(value), fix="convert them first, for example x.astype(np.float32)")
    return value.astype(defn.numpy_dtype)


def _check_per_device(value: Any, where: str, devices: int, wanted: str) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != devices:
        raise CheckError(f"{where}: one entry per device is needed", expected=wanted, got=describe(value),
                         fix="put the array into a list: job([x])" if devices == 1 else
                             f"split the batch: job(np.array_split(x, {devices}))")


def _check_piece(value: Any, defn: ArgBlobDef, where: str) -> None:
    wanted = f"a {defn.dtype.name} array of rank {len(defn.shape)}"
    if type(value) is not np.ndarray:
        raise CheckError(f"{where}: not a NumPy array", expected=wanted, got=describe(value), fix=_array_advice(value))
    if value.ndim != len(defn.shape):
        raise CheckError(f"{where}: the rank does not fit", expected=f"{wanted}, at most {defn.shape}",
                         got=describe(value), fix="reshape it; sizes may vary from call to call, the rank may not")


def _array_advice(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "np.asarray(x) makes a plain array of it"
    if hasattr(value, "numpy"):
        return "pass x.numpy()"
    return "np.array(x) makes an array of it"


def _shape_advice(want: tuple, got: tuple) -> str:
    """The most likely cause of a wrong shape, and what to do."""
    if len(want) == len(got) and want[1:] == got[1:]:
        if got[0] < want[0]:
            return (f"a last, smaller batch? Drop it, or fill it up to {want[0]} rows: the shape must be exact "
                    "(tp.ListNumpy takes batches that vary)")
        return f"feed {want[0]} rows at a time: x[i:i + {want[0]}]"
    if got == want[1:]:
        return "the batch axis is missing: x[None]" if want[0] == 1 else f"one sample? Stack {want[0]}: np.stack([...])"
    if len(want) == len(got) and sorted(want) == sorted(got):
        left, perm = list(enumerate(got)), []
        for n in want:
            perm.append(next(i for i, m in left if m == n))
            left.remove((perm[-1], n))
        return f"the axes are in another order: x.transpose{tuple(perm)}"
    if prod(want) == prod(got):
        return f"x.reshape{want}"
    return f"feed {want}, or declare Placeholder({got})"


def _swapped(parameters: tuple, defs: tuple, args: tuple, devices: int) -> str:
    """Advice when exchanging two arguments would make both fit where they did not."""
    def fits(d, a):
        try:
            check_argument(d, a, "", devices)
        except (CheckError, DTypeError):
            return False
        return True

    bad = [i for i, (d, a) in enumerate(zip(defs, args)) if not fits(d, a)]
    if len(bad) == 2 and fits(defs[bad[0]], args[bad[1]]) and fits(defs[bad[1]], args[bad[0]]):
        return f"{parameters[bad[0]]} and {parameters[bad[1]]} look swapped: the order is ({', '.join(parameters)})"
    return ""
