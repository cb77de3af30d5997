"""Blobs of a job under construction, with OneFlow 0.4's operators and layouts, and the results of jobs."""
from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from flowedu.core.job.blob import JobBlob
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.dtype import int8
from flowedu.errors import CheckError
from flowedu.oneflow04 import distribute as wishes
from flowedu.oneflow04 import math
from flowedu.oneflow04.job.values import is_list
from flowedu.ops.front import front


class PlacedBlob(JobBlob):
    """A blob of a job that is being built. + - * / % and comparisons build ops; comparisons give int8 blobs.

    Attributes (beside those of JobBlob): parallel_conf, the placement where it was made; parallel_size, how many devices
    that are; is_tensor_list. Of OneFlow 0.3 and older: batch_axis, 0 for what is made from arguments or sources, None for
    the rest; disable_boxing.
    """

    disable_boxing = False

    def __init__(self, value, op_name: str, blob_name: str, context, is_dynamic: bool = False):
        super().__init__(value, op_name, blob_name, context, is_dynamic)
        self.parallel_conf = context.placement

    def call_op(self, op, inputs: tuple, attrs: tuple):
        """As a front-end function, which looks at all arguments. (flow.math and friends also give the result a name.)"""
        return front(op.name.capitalize())(lambda *values: op.call(values, attrs))(*inputs)

    @property
    def distribute(self):
        """What its readers are asked to take (by default nothing in particular)."""
        return vars(self).get("_distribute", wishes.AUTO)

    @distribute.setter
    def distribute(self, wish) -> None:
        self._distribute = wish

    @property
    def parallel_size(self) -> int:
        return len(self.parallel_conf.devices)

    @property
    def is_tensor_list(self) -> bool:
        return is_list(self.value) or self.value in self.context.lists

    @property
    def batch_axis(self) -> int | None:
        return 0 if self.shape and self.context.is_data(self.value) else None

    def has_batch_axis(self) -> bool:
        return self.batch_axis is not None

    def with_distribute(self, distribute) -> BlobDef:
        """A handle on the same blob that asks its readers for this distribution; no value changes."""
        return wishes.hinted(self, distribute)

    def with_split_distribute(self, axis: int) -> BlobDef:
        """with_distribute(flow.distribute.split(axis)), as OneFlow 0.2 wrote it."""
        return self.with_distribute(wishes.split(axis))

    def with_broadcast_distribute(self) -> BlobDef:
        """with_distribute(flow.distribute.broadcast()), as OneFlow 0.2 wrote it."""
        return self.with_distribute(wishes.broadcast())

    def with_boxing_disabled(self, val: bool = True) -> BlobDef:
        """A handle with disable_boxing set. (Of OneFlow 0.2. Stored: boxing is done where it is needed.)"""
        handle = copy.copy(self)
        handle.disable_boxing = val
        return handle

    def with_gradient_distribute(self, distribute) -> BlobDef:
        """The same blob, whose gradient has this distribution."""
        return wishes.parallel_cast(self, gradient_distribute=distribute)

    def __bool__(self):
        if self.dtype is int8:                 # if x > 0: ..., or x in blobs
            raise self._make_error("truth value", "flow.where(x > 0, a, b) chooses element by element; `a is b` "
                                   "compares blobs, and `mask is not None` looks whether there is one")
        return True

    __hash__ = object.__hash__


def _operator(function: str, reflected: bool = False):
    """The method for an operator: it calls a function of flow.math."""
    def method(self, other):
        operands = (other, self) if reflected else (self, other)
        return getattr(math, function)(*operands)
    return method


for _name, _function in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "div": "divide",
                         "mod": "mod"}.items():
    setattr(PlacedBlob, f"__{_name}__", _operator(_function))
    setattr(PlacedBlob, f"__r{_name}__", _operator(_function, reflected=True))
for _name, _function in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                         "ge": "greater_equal"}.items():
    setattr(PlacedBlob, f"__{_name}__", _operator(_function))


class ConsistentBlob(PlacedBlob):
    """A blob seen as one logical value, however it lies on the devices."""

    @property
    def split_axis(self) -> int | None:
        """The axis a hint splits it along."""
        return getattr(self.distribute, "axis", None)


class EagerConsistentBlob(ConsistentBlob):
    """A blob in eager execution mode: it holds data."""

    def numpy(self, rank: int | None = None) -> np.ndarray:
        """The value (a copy)."""
        return self.value.numpy().copy()

    def numpy_list(self) -> list[np.ndarray]:
        return [self.numpy()]

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)


class MirroredBlob(PlacedBlob):
    """A blob with a value of its own on every device.

    Attributes: values, those values; shape and dtype are those on the first device.
    """

    def __init__(self, values: tuple, op_name: str, blob_name: str, context, is_dynamic: bool):
        super().__init__(values[0], op_name, blob_name, context, is_dynamic)
        self._values = tuple(values)

    @property
    def values(self) -> tuple:
        return self._values

    @property
    def sub_consistent_blob_list(self) -> list[ConsistentBlob]:
        """The blobs of the single devices."""
        many = len(self.values) > 1
        return [ConsistentBlob(v, f"{self.op_name}_{i}" if many else self.op_name, self.blob_name, self.context,
                               self.is_dynamic) for i, v in enumerate(self.values)]

    @property
    def parallel_size(self) -> int:
        return len(self.values)


class LocalBlob:
    """A result of a job without return annotation, or what an un-annotated watch handler gets: an ndarray with a name.

    Attributes and operators of the ndarray work on it directly.
    """

    __array_priority__ = 1000

    def __init__(self, arrays: np.ndarray | Sequence[np.ndarray], is_dynamic: bool = False):
        self._arrays, self.is_dynamic = [arrays] if isinstance(arrays, np.ndarray) else list(arrays), is_dynamic

    @property
    def _array(self) -> np.ndarray:
        """The whole value: the devices' arrays joined along axis 0."""
        return self._arrays[0] if len(self._arrays) == 1 else np.concatenate(self._arrays)

    def numpy(self, parallel_id: int | None = None) -> np.ndarray:
        """The whole value, or that of one device."""
        if parallel_id is None:
            return self._array
        if not isinstance(parallel_id, int) or not 0 <= parallel_id < len(self._arrays):
            raise CheckError("LocalBlob.numpy: no such device", expected=f"None, or 0 to {len(self._arrays) - 1}",
                             got=repr(parallel_id), fix="numpy() gives the whole value")
        return self._arrays[parallel_id]

    ndarray = numpy

    def numpy_list(self) -> list:
        """The value on each device."""
        return list(self._arrays)

    ndarray_list = numpy_list

    def numpy_lists(self) -> list:
        """For a tensor list: per device its arrays."""
        return [list(a) if isinstance(a, (list, tuple)) else [a] for a in self._arrays]

    def parallel_num(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name):
        if name.startswith("_"):                   # what copy and pickle look for before there is an array
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
