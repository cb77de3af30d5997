"""Blobs of a job under construction, with OneFlow 0.4's operators and layouts, and the results of jobs."""
from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from flowedu.core.job.blob import JobBlob
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.dtype import int8
from flowedu.errors import CheckError
from flowedu.errors.values import no_data
from flowedu.oneflow04 import distribute as wishes
from flowedu.oneflow04 import math
from flowedu.oneflow04.job.containers import is_list
from flowedu.ops.front import front


class PlacedBlob(JobBlob):
    """A blob of a job that is being built. Operators add ops to the job; comparisons return int8 blobs.

    Attributes, in addition to those of JobBlob:
        parallel_conf: the placement in which the blob was created.
        parallel_size: the number of its devices.
        is_tensor_list: True for a tensor list.
        batch_axis: 0 for values that depend on arguments or sources, else None (OneFlow 0.3 and older).
        disable_boxing: a stored flag (OneFlow 0.3 and older).
    """

    disable_boxing = False

    def __init__(self, value, op_name: str, blob_name: str, context, is_dynamic: bool = False):
        super().__init__(value, op_name, blob_name, context, is_dynamic)
        self.parallel_conf = context.placement

    def call_op(self, op, inputs: tuple, attrs: tuple):
        """Call an op through its front-end function, which checks all arguments.

        Functions of flow.math also name the result.
        """
        return front(op.name.capitalize())(lambda *values: op.call(values, attrs))(*inputs)

    @property
    def distribute(self):
        """The layout hint for the ops that read the blob; default: none."""
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
        """Return a handle on the same blob with a layout hint for its readers.

        Args:
            distribute: a hint of flow.distribute.
        """
        return wishes.attach_hint(self, distribute)

    def with_split_distribute(self, axis: int) -> BlobDef:
        """Return with_distribute(flow.distribute.split(axis)), OneFlow 0.2's name.

        Args:
            axis: the axis to split.
        """
        return self.with_distribute(wishes.split(axis))

    def with_broadcast_distribute(self) -> BlobDef:
        """Return with_distribute(flow.distribute.broadcast()), OneFlow 0.2's name."""
        return self.with_distribute(wishes.broadcast())

    def with_boxing_disabled(self, val: bool = True) -> BlobDef:
        """Return a handle with the flag disable_boxing of OneFlow 0.2. The flag has no effect.

        Args:
            val: the value of the flag.
        """
        handle = copy.copy(self)
        handle.disable_boxing = val
        return handle

    def with_gradient_distribute(self, distribute) -> BlobDef:
        """Return the same blob with a layout for its gradient.

        Args:
            distribute: a hint of flow.distribute.
        """
        return wishes.parallel_cast(self, gradient_distribute=distribute)

    def __bool__(self):
        if self.dtype is int8:                 # if x > 0: ..., or x in blobs
            raise no_data(self, "truth value", "flow.where(x > 0, a, b) chooses element by element; `a is b` "
                          "compares blobs, and `mask is not None` looks whether there is one")
        return True

    __hash__ = object.__hash__


def _operator(function: str, reflected: bool = False):
    """Make the method for an operator from a function of flow.math."""
    def method(self, other):
        operands = (other, self) if reflected else (self, other)
        return getattr(math, function)(*operands)
    return method


for _name, _function in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
                         "div": "divide", "mod": "mod"}.items():
    setattr(PlacedBlob, f"__{_name}__", _operator(_function))
    setattr(PlacedBlob, f"__r{_name}__", _operator(_function, reflected=True))
for _name, _function in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                         "ge": "greater_equal"}.items():
    setattr(PlacedBlob, f"__{_name}__", _operator(_function))


class ConsistentBlob(PlacedBlob):
    """A blob that is one logical value, with any layout on the devices. Ops create it.

    Args:
        value: the value in the graph.
        op_name: the name of the op.
        blob_name: the name of the output of the op.
        context: the context of the job.
        is_dynamic: True if the shape may vary from run to run.
    """

    @property
    def split_axis(self) -> int | None:
        """The axis of a split hint, or None."""
        return getattr(self.distribute, "axis", None)


class EagerConsistentBlob(ConsistentBlob):
    """A blob in eager execution mode, which holds data. Ops create it.

    Args:
        value: a tensor.
        op_name: the name of the op.
        blob_name: the name of the output of the op.
        context: the context of the job.
        is_dynamic: True if the shape may vary from run to run.
    """

    def numpy(self, rank: int | None = None) -> np.ndarray:
        """Return a copy of the value."""
        return self.value.numpy().copy()

    def numpy_list(self) -> list[np.ndarray]:
        return [self.numpy()]

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)


class MirroredBlob(PlacedBlob):
    """A blob with a separate value on every device. Ops create it.

    Args:
        values: the values, one per device. `shape` and `dtype` are those of the first.
        op_name: the name of the op.
        blob_name: the name of the output of the op.
        context: the context of the job.
        is_dynamic: True if the shape may vary from run to run.
    """

    def __init__(self, values: tuple, op_name: str, blob_name: str, context, is_dynamic: bool):
        super().__init__(values[0], op_name, blob_name, context, is_dynamic)
        self._values = tuple(values)

    @property
    def values(self) -> tuple:
        return self._values

    @property
    def sub_consistent_blob_list(self) -> list[ConsistentBlob]:
        """One blob per device."""
        many = len(self.values) > 1
        return [ConsistentBlob(v, f"{self.op_name}_{i}" if many else self.op_name, self.blob_name,
                               self.context, self.is_dynamic) for i, v in enumerate(self.values)]

    @property
    def parallel_size(self) -> int:
        return len(self.values)


class LocalBlob:
    """A named ndarray: a result of a job or an argument of a watch handler that has no annotation.

    Attributes and operators of ndarray apply to the value.

    Args:
        arrays: an ndarray, or one per device.
        is_dynamic: True if the shape may vary from run to run.
    """

    __array_priority__ = 1000

    def __init__(self, arrays: np.ndarray | Sequence[np.ndarray], is_dynamic: bool = False):
        self._arrays, self.is_dynamic = ([arrays] if isinstance(arrays, np.ndarray) else list(arrays),
                                         is_dynamic)

    @property
    def _array(self) -> np.ndarray:
        """The whole value: the arrays of all devices, joined along axis 0."""
        return self._arrays[0] if len(self._arrays) == 1 else np.concatenate(self._arrays)

    def numpy(self, parallel_id: int | None = None) -> np.ndarray:
        """Return the whole value, or the value of one device.

        Args:
            parallel_id: the index of a device; None returns the whole value.
        """
        if parallel_id is None:
            return self._array
        if not isinstance(parallel_id, int) or not 0 <= parallel_id < len(self._arrays):
            raise CheckError("LocalBlob.numpy: no such device",
                             expected=f"None, or 0 to {len(self._arrays) - 1}",
                             got=repr(parallel_id), fix="numpy() gives the whole value")
        return self._arrays[parallel_id]

    ndarray = numpy

    def numpy_list(self) -> list:
        """Return the value of each device."""
        return list(self._arrays)

    ndarray_list = numpy_list

    def numpy_lists(self) -> list:
        """Return the arrays of a tensor list, one list per device."""
        return [list(a) if isinstance(a, (list, tuple)) else [a] for a in self._arrays]

    def parallel_num(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name):
        # Copy and pickle look up such names before the array exists.
        if name.startswith("_"):
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


for _name in ("add radd sub rsub mul rmul truediv rtruediv floordiv mod pow neg eq ne lt le gt ge matmul "
              "getitem len iter setitem contains bool float int abs str format").split():
    setattr(LocalBlob, f"__{_name}__", _delegate(f"__{_name}__"))
LocalBlob.__hash__ = object.__hash__
