"""The type names of job functions: `import flowedu.typing as tp`.

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((100, 784)), y: tp.Numpy.Placeholder((100,), flow.int32)) -> tp.Numpy: ...

| name | returned from a job | as a parameter |
|---|---|---|
| `Numpy` | one ndarray | `Numpy.Placeholder(shape, dtype)`: exactly this shape |
| `ListNumpy` | a list of ndarrays, one per device | `.Placeholder`: the most one device may get |
| `ListListNumpy` | per device a list of ndarrays | `.Placeholder`: the most one device may get |
| `Tuple[..]`, `List[T]`, `Dict[K, T]` | the same containers | `Tuple[placeholder, ...]` |
| `Bundle[T]` | any nesting of list, tuple, dict over T | - |
| `Callback[T]` | a function that takes yours, and calls it with a T | - |

core/values/signature.py reads these annotations, of one array; oneflow04/job/annotation.py the others.
"""
from __future__ import annotations

from typing import Generic, TypeVar

from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import dtype, float32

T = TypeVar("T")


class PlaceholderType(type):
    """Type of the classes below, so that error messages show them as they were written."""

    def __repr__(cls) -> str:
        return f"{cls.__name__}({cls.shape}, {cls.dtype.name})" if hasattr(cls, "shape") else cls.__name__


class PlaceholderDef(metaclass=PlaceholderType):
    """Base of the classes that `X.Placeholder(...)` makes. They have `shape`, `dtype` and `batch_axis`."""

    arg_def: type[ph.ArgBlobDef]

    @classmethod
    def NewInputBlobDef(cls) -> ph.ArgBlobDef:
        """A fresh definition of the input; checks the sizes in the shape."""
        return cls.arg_def(cls.shape, cls.dtype, cls.batch_axis)


class NumpyDef(PlaceholderDef):
    arg_def = ph.FixedTensorDef


class ListOfNumpyDef(PlaceholderDef):
    arg_def = ph.MirroredTensorDef


class ListOfListOfNumpyDef(PlaceholderDef):
    arg_def = ph.MirroredTensorListDef


class PyStructCompatibleToBlob:
    """Base of the types that are a blob inside a job and NumPy outside of it."""


class _Fed(PyStructCompatibleToBlob):
    _base: type[PlaceholderDef]

    @classmethod
    def Placeholder(cls, shape: tuple[int, ...], dtype: dtype = float32, batch_axis: int | None = 0) -> type:
        """The annotation of a parameter: what one call must bring.

        Args:
            shape: a tuple; exact for Numpy, the most one device may get for the others.
            dtype: what the array is cast to.
            batch_axis: the axis of the samples (None: none); may be negative.
        """
        what = f"{cls.__name__}.Placeholder"
        ph.check_shape_is_tuple(shape, what)
        fields = {"shape": shape, "dtype": ph.element_type(dtype, what),
                  "batch_axis": ph.normal_batch_axis(batch_axis, len(shape), what)}
        return type(cls._base)(what, (cls._base,), fields)


class Numpy(_Fed):
    """As a return annotation: one ndarray. As a parameter: `Numpy.Placeholder(shape, dtype)`."""

    _base = NumpyDef


class ListNumpy(_Fed):
    """A list of ndarrays, one per device, whose sizes may vary from call to call."""

    _base = ListOfNumpyDef


class ListListNumpy(_Fed):
    """Per device a list of ndarrays (a tensor list)."""

    _base = ListOfListOfNumpyDef


class Callback(Generic[T]):
    """`-> Callback[T]`: the job returns a function; give it yours, and it is called with the result, a T."""


class Bundle(Generic[T]):
    """`-> Bundle[T]`: any nesting of list, tuple and dict with leaves of type T."""


LEAVES = (Numpy, ListNumpy, ListListNumpy)
