"""Blob: a value with a name in a graph. It describes data (shape, dtype, name); it holds none.

The class names are those of OneFlow 0.2, whose documents call `BlobDef` the base of all blobs.
"""
from __future__ import annotations

from flowedu.core.values.dtype import dtype
from flowedu.errors import ArgumentError, DTypeError

# {name of NumPy's function for an operator: the method that Python calls for `array op blob`}
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
              "floor_divide": "__rfloordiv__", "power": "__rpow__", "matmul": "__rmatmul__", "remainder": "__rmod__",
              "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__",
              "not_equal": "__ne__"}

# Methods that need data: {method: (its name in the error, the fix)}
_NEED_DATA = {
    "numpy": ("numpy()", "return it from the job, or flow.watch(blob, handler)"),
    "__array__": ("array", "return it from the job, or flow.watch(blob, handler)"),
    "__getitem__": ("indexing", "use flow.slice(x, begin, size)"),
    "__setitem__": ("assignment to a part", "use flow.slice_update, or flow.where(mask, x, y)"),
    "__len__": ("len()", "use blob.shape[0]"),
    "__iter__": ("iteration", "use flow.slice, or return it and iterate the array"),
    "__abs__": ("abs()", "use flow.math.abs(x)"),
    "__pos__": ("unary plus", "leave it out"),
    "__neg__": ("unary minus", "use flow.math.negative(x)"),
    **dict.fromkeys(("__float__", "__int__", "__index__"), ("number", "return it from the job; or use flow's ops")),
    **dict.fromkeys(("__pow__", "__rpow__"), ("**", "use flow.math.pow(x, y)")),
    **dict.fromkeys(("__matmul__", "__rmatmul__"), ("@", "use flow.matmul(a, b)")),
    **dict.fromkeys(("__floordiv__", "__rfloordiv__"), ("//", "use flow.math.floordiv(x, y)"))}


class BlobDesc:
    """Base of the descriptions of a blob: names formed from op_name, blob_name, and distribute."""

    is_dynamic = False

    @property
    def logical_blob_name(self) -> str:
        return f"{self.op_name}/{self.blob_name}"

    @property
    def unique_name(self) -> str:
        return self.logical_blob_name + getattr(self.distribute, "suffix", "")


class BlobDef(BlobDesc):
    """A value named `op_name/blob_name`; checkpoints and plans show this name.

    Attributes: shape (tuple of int), dtype, is_dynamic, op_name, blob_name, logical_blob_name, unique_name.
    """

    distribute = None

    def __init__(self, value, op_name: str, blob_name: str):
        self.value, self.op_name, self.blob_name = value, op_name, blob_name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.spec.shape

    @property
    def dtype(self) -> dtype:
        return self.value.spec.dtype

    @property
    def lbi(self) -> BlobDef:
        """The logical blob id, an object with op_name and blob_name: the blob itself."""
        return self

    def IdenticalTo(self, other: BlobDef) -> bool:
        """Return True if all static attributes are equal."""
        return isinstance(other, BlobDef) and (self.unique_name, self.shape, self.dtype, self.is_dynamic) == (
            other.unique_name, other.shape, other.dtype, other.is_dynamic)

    def call_op(self, op, inputs: tuple, attrs: tuple):
        """Run an op on blobs. Blobs of a job override this; a bare description raises."""
        raise ArgumentError(f"{op.name}: a blob outside a job describes data and has none", got=repr(self),
                            fix="call it in the body of a job function, or on tensors")

    def _make_error(self, what: str, fix: str):
        return ArgumentError(f"a blob has no {what}: inside a job it stands for data that does not exist yet",
                             expected="ops that build the graph: flow.math, flow.nn, + - * /", got=repr(self), fix=fix)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        reflected = getattr(self, _REFLECTED.get(ufunc.__name__, ""), None)
        if reflected is not None and method == "__call__" and inputs[1] is self:
            return reflected(inputs[0])
        raise DTypeError(f"np.{ufunc.__name__}: NumPy computes with arrays, and a blob is none: inside a job it stands for "
                         "data that does not exist yet", expected="ops that build the graph: flow.math, flow.nn", got=repr(
                             self), fix=f"flow.math.{ufunc.__name__}(x), or return the blob and use NumPy on the result")

    def __bool__(self):
        return True

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.logical_blob_name} shape={self.shape} dtype={self.dtype!r}>"


def _forbid(what: str, fix: str):
    def refuse(self, *args, **kwargs):
        raise self._make_error(what, fix)
    return refuse


for _name, (_what, _fix) in _NEED_DATA.items():
    setattr(BlobDef, _name, _forbid(_what, _fix))
