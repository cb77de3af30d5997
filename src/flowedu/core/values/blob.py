"""Blob: a named value of a graph, which describes data (shape, dtype, name) but holds none.

The class names are those of OneFlow 0.2, whose documents call `BlobDef` the base of all blobs.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.values.dtype import dtype
from flowedu.errors import values as errors

# {name of NumPy's function for an operator: the method that Python calls for `array op blob`}
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__",
              "divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "power": "__rpow__",
              "matmul": "__rmatmul__", "remainder": "__rmod__", "less": "__gt__",
              "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
              "equal": "__eq__", "not_equal": "__ne__"}


class BlobDesc:
    """Base class of blob descriptions. It forms names from op_name, blob_name, and distribute."""

    is_dynamic, distribute = False, None
    op_name = blob_name = ""

    @property
    def logical_blob_name(self) -> str:
        return f"{self.op_name}/{self.blob_name}"

    @property
    def unique_name(self) -> str:
        return self.logical_blob_name + getattr(self.distribute, "suffix", "")


class BlobDef(BlobDesc):
    """A value named `op_name/blob_name`; checkpoints and plans show this name.

    Further attributes: shape, dtype, is_dynamic, logical_blob_name, unique_name.

    Args:
        value: the described value, an object with a `spec`.
        op_name, blob_name: names of the op and of its output.
    """

    def __init__(self, value: Any, op_name: str, blob_name: str):
        self.value, self.op_name, self.blob_name = value, op_name, blob_name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.spec.shape

    @property
    def dtype(self) -> dtype:
        return self.value.spec.dtype

    @property
    def job_name(self) -> str:
        return ""

    @property
    def lbi(self) -> BlobDef:
        """The logical blob id, an object with op_name and blob_name: the blob itself."""
        return self

    def IdenticalTo(self, other: BlobDef) -> bool:
        """Return True if all static attributes are equal."""
        return isinstance(other, BlobDef) and all(getattr(self, n) == getattr(other, n) for n in (
            "unique_name", "shape", "dtype", "is_dynamic"))

    def call_op(self, op: Any, inputs: tuple, attrs: tuple) -> Any:
        """Run an op on blobs. Blobs of a job override this; a bare description raises."""
        raise errors.blob_without_values(op.name, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        reflected = getattr(self, _REFLECTED.get(ufunc.__name__, ""), None)
        if reflected is not None and method == "__call__" and inputs[1] is self:
            return reflected(inputs[0])
        raise errors.numpy_of_blob(ufunc.__name__, self)

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        name = f"{type(self).__name__} {self.logical_blob_name}"
        return f"<{name} shape={self.shape} dtype={self.dtype!r}>"


errors.forbid_data(BlobDef)
