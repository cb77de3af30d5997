"""Annotations for the parameters and results of job functions: `import flowedu.typing as tp`.

| name | returned from a job | as a parameter |
|---|---|---|
| `Numpy` | one ndarray | `Numpy.Placeholder(shape, dtype)`: exactly this shape |
| `ListNumpy` | a list of ndarrays, one per device | `.Placeholder`: the largest shape per device |
| `ListListNumpy` | per device a list of ndarrays | `.Placeholder`: the largest size per device |
| `Tuple[..]`, `List[T]`, `Dict[K, T]` | the same containers | `Tuple[placeholder, ...]` |
| `Bundle[T]` | any nesting of list, tuple, dict over T | - |
| `Callback[T]` | a function that calls its argument with a T | - |

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
    """A list of ndarrays (a tensor list) per device."""

    _base = ListOfListOfNumpyDef


class Callback(Generic[T]):
    """Annotation `-> Callback[T]`: the job returns a function that calls its argument with the result, a T.
    """


class Bundle(Generic[T]):
    """Annotation `-> Bundle[T]`: any nesting of list, tuple, and dict with leaves of type T."""


LEAVES = (Numpy, ListNumpy, ListListNumpy)
