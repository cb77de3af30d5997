"""Errors of values: dtypes, shapes, blobs, and arguments of jobs, for core to raise."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu.errors import (
    ArgumentError,
    CheckError,
    DTypeError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
    format_value,
)


def blob_without_values(name: str, blob: Any) -> ArgumentError:
    return ArgumentError(f"{name}: a blob outside a job describes data and has none", got=repr(blob),
                         fix="call it in the body of a job function, or on tensors")


def numpy_of_blob(name: str, blob: Any) -> DTypeError:
    return DTypeError(f"np.{name}: NumPy computes with arrays, and a blob is none: inside a job it "
                      "stands for data that does not exist yet",
                      expected="ops that build the graph: flow.math, flow.nn", got=repr(blob),
                      fix=f"flow.math.{name}(x), or return the blob and use NumPy on the result")


def unknown_dtype_name(name: str, names: Iterable[str]) -> DTypeError:
    return DTypeError(f"no element type has the name {name!r}", expected=", ".join(names), got=repr(name))


def unknown_dtype(what: str, names: Sequence, got: Any, fix: str) -> DTypeError:
    return DTypeError(f"{what} is not an element type flowedu knows", expected=f"one of flow.{{{names}}}",
                      got=repr(got), fix=fix)


def default_dtype(got: Any) -> DTypeError:
    return DTypeError("set_default_dtype: only floating-point types are supported as the default type",
                      expected="float32, float64, float16 or bfloat16", got=repr(got))


def placeholder_axis(what: str, dim: int, shape: Sequence) -> CheckError:
    return CheckError(f"{what}: every axis of the shape must be an int above zero",
                      expected="Python ints > 0", got=f"{dim!r} ({type(dim).__name__}) in {shape}",
                      fix="write int(n) for a NumPy integer" if isinstance(dim, np.integer)
                      else "write the sizes the job is to be fed with; none can be left open")


def not_a_strategy(placeholder: Any, distribute: Any) -> CheckError:
    return CheckError(f"{type(placeholder).__name__}.with_distribute: not a distribute strategy",
                      got=repr(distribute), expected="flow.distribute.split(axis), broadcast() or auto()",
                      fix="flow.distribute.split(0)")


def wrong_argument(where: str, problem: str, dtype: Any, shape: Sequence, value: Any) -> CheckError:
    return CheckError(f"{where}: {problem}", expected=f"a {dtype} array of shape {shape}",
                      got=format_value(value), fix="pass such an array")


def wrong_number_of_arguments(name: str, defs: Any, parameters: Any, args: Any) -> CheckError:
    return CheckError(f"{name}: wrong number of arguments",
                      expected=f"{len(defs)}: ({', '.join(parameters)})", got=str(len(args)),
                      fix="a job takes every placeholder, by position")


def no_numpy_array(what: str, name: str, dtype: Any) -> UnsupportedError:
    return UnsupportedError(f"{what}: {name} has no NumPy array",
                            expected="a number type such as flow.float32", got=repr(dtype),
                            fix="read such data inside the job with flow.data.ofrecord_reader")


def batch_axis_range(what: str, rank: int, axis: Any) -> CheckError:
    return CheckError(f"{what}: batch_axis is out of range", expected=f"None or an int in [{-rank}, "
                      f"{rank - 1}]", got=repr(axis), fix="leave it out: axis 0 holds the samples")


def not_numbers(where: str, dtype: Any, value: Any) -> DTypeError:
    return DTypeError(f"{where}: the elements are not numbers", expected=f"numbers, to be cast to {dtype}",
                      got=format_value(value), fix="convert them first, for example x.astype(np.float32)")


def no_placeholder(name: str, parameter: str, tree: Any, missing: Any) -> UnsupportedError:
    return UnsupportedError(f"{name}: parameter {parameter} has no placeholder",
                            expected="a placeholder as its annotation", got="no annotation" if tree is missing
                            else f"the default value {tree!r}", fix=f"write {parameter}: "
                            "tp.Numpy.Placeholder(shape, dtype); bring constants in from outside")


def wrong_return(name: str, returns: Any, value: Any) -> CheckError:
    return CheckError(f"{name}: the returned value does not match the return annotation",
                      expected="None" if returns is None else "a blob", got=format_value(value),
                      fix=suggest_return(value))


def return_annotation(name: str, annotation: Any) -> UnsupportedError:
    return UnsupportedError(f"{name}: return annotation", expected="tp.Numpy or None",
                            fix="write -> tp.Numpy", got=repr(annotation))


def too_many_axes(what: str, most: int, shape: Sequence) -> ShapeError:
    return ShapeError(f"{what}: the result has too many axes", expected=f"at most {most}", got=str(shape),
                      fix="merge axes: reshape to fewer")


def negative_size(what: str, shape: Sequence) -> ShapeError:
    return ShapeError(f"{what}: a size is negative", expected="sizes of 0 or more", got=str(shape),
                      fix="check the sizes")


def too_large(what: str, most: int, spec: Any, extent: Any) -> OutOfMemoryError:
    return OutOfMemoryError(f"{what}: no memory has room for this", expected=f"at most {most:,} bytes",
                            got=f"{spec}, {extent * spec.dtype.bytes:,} bytes" + ", its sizes of 0 taken as "
                            "1" * (0 in spec.shape), fix="check the sizes")


def size_not_an_int(what: str, shape: Sequence) -> ShapeError:
    return ShapeError(f"{what}: a size is not an integer", expected="ints of 0 or more",
                      got=str(tuple(shape)), fix="int(n)")


def partial_strides(strides: Any) -> ShapeError:
    return ShapeError("from_numpy: the array's strides are not whole elements", got=str(strides),
                      fix="pass numpy.ascontiguousarray(x)")

# ---- blobs
# Methods of a blob that need data: {method: (its name in the error, the fix)}
NEED_DATA = {
    "numpy": ("numpy()", "return it from the job, or flow.watch(blob, handler)"),
    "__array__": ("array", "return it from the job, or flow.watch(blob, handler)"),
    "__getitem__": ("indexing", "use flow.slice(x, begin, size)"),
    "__setitem__": ("assignment to a part", "use flow.slice_update, or flow.where(mask, x, y)"),
    "__len__": ("len()", "use blob.shape[0]"),
    "__iter__": ("iteration", "use flow.slice, or return it and iterate the array"),
    "__abs__": ("abs()", "use flow.math.abs(x)"),
    "__pos__": ("unary plus", "leave it out"),
    "__neg__": ("unary minus", "use flow.math.negative(x)"),
    **dict.fromkeys(("__float__", "__int__", "__index__"), ("number",
                                                            "return it from the job; or use flow's ops")),
    **dict.fromkeys(("__pow__", "__rpow__"), ("**", "use flow.math.pow(x, y)")),
    **dict.fromkeys(("__matmul__", "__rmatmul__"), ("@", "use flow.matmul(a, b)")),
    **dict.fromkeys(("__floordiv__", "__rfloordiv__"), ("//", "use flow.math.floordiv(x, y)")),
}


def no_data(blob: Any, what: str, fix: str) -> ArgumentError:
    return ArgumentError(f"a blob has no {what}: inside a job it stands for data that does not exist yet",
                         expected="ops that build the graph: flow.math, flow.nn, + - * /", got=repr(blob),
                         fix=fix)


def forbid_data(cls: type) -> None:
    """Set the methods of NEED_DATA of a blob class, each of which raises its error."""
    def make_method(what: str, fix: str) -> Callable:
        def refuse(self, *args, **kwargs):
            raise no_data(self, what, fix)
        return refuse

    for name, (what, fix) in NEED_DATA.items():
        setattr(cls, name, make_method(what, fix))


# ---- arguments and results of jobs
def shape_not_a_tuple(what: str, shape: Any) -> CheckError:
    fix = "write (100, 784), say"
    if isinstance(shape, (list, tuple, np.ndarray)):
        fix = f"write {tuple(shape)}"
    elif isinstance(shape, int):
        fix = f"write ({shape},): the comma makes the tuple"
    return CheckError(f"{what}: the shape must be a tuple", expected="a tuple of ints",
                      got=format_value(shape),
                      fix=fix)


def suggest_return(value: Any) -> str:
    """Return the fix for a body that returned `value`, which is not a blob."""
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return "the body runs once, at compile: return a blob, such as flow.constant(...), not a value"
    return "forgot `return`?" if value is None else "return what flow's ops give"


# ---- memory
def out_of_memory(what: str, got: str, nbytes: int, live_bytes: int,
                  more: Mapping[str, str]) -> OutOfMemoryError:
    fix = ("use smaller sizes or batches, del tensors that are no longer needed, compute without gradients "
           "under flow.no_grad()")
    return OutOfMemoryError(f"{what}: out of memory", expected=f"{nbytes:,} bytes more than the "
                            f"{live_bytes:,} in use", got=f"{got}, {nbytes:,} bytes", **{"fix": fix, **more})
