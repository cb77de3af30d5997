"""`import flowedu.typing as tp`: annotations for the parameters and results of job functions.

| name | returned from a job | as a parameter |
|---|---|---|
| `Numpy` | one ndarray | `Numpy.Placeholder(shape, dtype)`: exactly this shape |
| `ListNumpy` | a list of ndarrays, one per device | `.Placeholder`: the most one device may get |
| `ListListNumpy` | per device a list of ndarrays | `.Placeholder`: the most one device may get |
| `Tuple[..]`, `List[T]`, `Dict[K, T]` | the same containers | `Tuple[placeholder, ...]` |
| `Bundle[T]` | any nesting of list, tuple, dict over T | - |
| `Callback[T]` | a function that takes yours, and calls it with a T | - |

oneflow04/job/annotation.py reads these annotations.
"""
from __future__ import annotations

from typing import Generic, TypeVar

from flowedu.core.values.typing import InputType, Numpy, PlaceholderDef, PyStructCompatibleToBlob
from flowedu.oneflow04.mirrored import MirroredTensorDef, MirroredTensorListDef

__all__ = ["Bundle", "Callback", "ListListNumpy", "ListNumpy", "Numpy", "PyStructCompatibleToBlob"]

T = TypeVar("T")


class ListOfNumpyDef(PlaceholderDef):
    arg_def = MirroredTensorDef


class ListOfListOfNumpyDef(PlaceholderDef):
    arg_def = MirroredTensorListDef


class ListNumpy(InputType):
    """A list of ndarrays, one per device, whose sizes may vary from call to call."""

    _base = ListOfNumpyDef


class ListListNumpy(InputType):
    """Per device a list of ndarrays (a tensor list)."""

    _base = ListOfListOfNumpyDef


class Callback(Generic[T]):
    """`-> Callback[T]`: the job returns a function; give it yours, and it is called with the result, a T."""


class Bundle(Generic[T]):
    """`-> Bundle[T]`: any nesting of list, tuple and dict with leaves of type T."""


LEAVES = (Numpy, ListNumpy, ListListNumpy)
