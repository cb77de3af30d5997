"""Blobs of a job under construction, with the operators of OneFlow 0.4, and what a job returns."""
from __future__ import annotations

import numpy as np

from flowedu import math
from flowedu.blob.blob import BlobDef
from flowedu.errors import CheckError
from flowedu.frontend import front


class ConsistentBlob(BlobDef):
    """A blob seen as one logical value. + - * / % and comparisons build ops; comparisons give int8 blobs."""

    def __init__(self, value, op_name: str, blob_name: str, graph):
        super().__init__(value, op_name, blob_name)
        self.graph = graph

    def call_op(self, op, inputs: tuple, attrs: tuple):
        """An op record called on blobs: unwrap, append the node, wrap. (flow.math and friends also give it a name.)"""
        return front(op.name.capitalize())(lambda *values: op.call(values, attrs))(*inputs)

    @property
    def job_name(self) -> str:
        return self.graph.name

    def __add__(self, other):
        return math.add(self, other)

    def __radd__(self, other):
        return math.add(other, self)

    def __sub__(self, other):
        return math.subtract(self, other)

    def __rsub__(self, other):
        return math.subtract(other, self)

    def __mul__(self, other):
        return math.multiply(self, other)

    def __rmul__(self, other):
        return math.multiply(other, self)

    def __truediv__(self, other):
        return math.divide(self, other)

    def __rtruediv__(self, other):
        return math.divide(other, self)

    def __mod__(self, other):
        return math.mod(self, other)

    def __rmod__(self, other):
        return math.mod(other, self)

    def __eq__(self, other):
        return math.equal(self, other)

    def __ne__(self, other):
        return math.not_equal(self, other)

    def __lt__(self, other):
        return math.less(self, other)

    def __le__(self, other):
        return math.less_equal(self, other)

    def __gt__(self, other):
        return math.greater(self, other)

    def __ge__(self, other):
        return math.greater_equal(self, other)

    __hash__ = object.__hash__


class LocalBlob:
    """A result of a job without return annotation, or what an un-annotated watch handler gets: an ndarray with a name.

    Attributes and operators of the ndarray work on it directly.
    """

    __array_priority__ = 1000

    def __init__(self, array: np.ndarray, is_dynamic: bool = False):
        self._array, self.is_dynamic = array, is_dynamic

    def numpy(self, parallel_id: int | None = None) -> np.ndarray:
        if parallel_id not in (None, 0):
            raise CheckError("LocalBlob.numpy: no such device", expected="None or 0", got=repr(parallel_id),
                             fix="numpy() gives the whole value")
        return self._array

    ndarray = numpy

    def numpy_list(self) -> list[np.ndarray]:
        return [self._array]

    ndarray_list = numpy_list

    def parallel_num(self) -> int:
        return 1

    def __getattr__(self, name):
        if name.startswith("__"):                  # what copy and pickle look for before there is an array
            raise AttributeError(name)
        return getattr(self._array, name)

    def __array__(self, dtype=None, copy=None):
        return self._array if dtype is None else self._array.astype(dtype)

    def __repr__(self) -> str:
        return repr(self._array)


def _delegate(name: str):
    def method(self, *args):
        return getattr(self._array, name)(*[a._array if isinstance(a, LocalBlob) else a for a in args])
    return method


for _name in ("add radd sub rsub mul rmul truediv rtruediv floordiv mod pow neg eq ne lt le gt ge matmul getitem len iter "
              "setitem contains bool float int abs str format").split():
    setattr(LocalBlob, f"__{_name}__", _delegate(f"__{_name}__"))
LocalBlob.__hash__ = object.__hash__
