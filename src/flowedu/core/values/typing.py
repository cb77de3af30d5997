"""Type names for the signatures of job functions: `import flowedu.typing as tp`.

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((100, 784)),
              y: tp.Numpy.Placeholder((100,), flow.int32)) -> tp.Numpy: ...

A parameter annotated `Numpy.Placeholder(shape, dtype)` takes one array of exactly this shape; the
return annotation `Numpy` means one array. signature.py reads both; oneflow04/typing.py adds more.
"""
from __future__ import annotations

from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import dtype, float32


class PlaceholderType(type):
    """Metaclass of the classes below. Their repr is `Numpy.Placeholder((2,), float32)`."""

    def __repr__(cls) -> str:
        if not hasattr(cls, "shape"):
            return cls.__name__
        return f"{cls.__name__}({cls.shape}, {cls.dtype.name})"  # type: ignore[attr-defined]


class PlaceholderDef(metaclass=PlaceholderType):
    """Base of the classes made by `X.Placeholder(...)`, with `shape`, `dtype` and `batch_axis`."""

    arg_def: type[ph.ArgBlobDef]

    @classmethod
    def NewInputBlobDef(cls) -> ph.ArgBlobDef:
        """Make a new definition of the input, and check the sizes of its shape."""
        return cls.arg_def(cls.shape, cls.dtype, cls.batch_axis)  # type: ignore[attr-defined]


class NumpyDef(PlaceholderDef):
    arg_def = ph.FixedTensorDef


class PyStructCompatibleToBlob:
    """Base of the types that are a blob inside a job and an ndarray outside of it."""


class InputType(PyStructCompatibleToBlob):
    _base: type[PlaceholderDef]

    @classmethod
    def Placeholder(cls, shape: tuple[int, ...], dtype: dtype = float32,
                    batch_axis: int | None = 0) -> type:
        """Make the annotation of a parameter.

        Args:
            shape: a tuple; the exact shape for Numpy, the largest shape per device for lists.
            dtype: arrays are cast to it silently, as in OneFlow 0.3 and 0.4 (0.2 raised TypeError).
            batch_axis: the axis of the samples (None: no axis); may be negative.
        """
        what = f"{cls.__name__}.Placeholder"
        ph.check_shape_is_tuple(shape, what)
        fields = {"shape": shape, "dtype": ph.check_element_type(dtype, what),
                  "batch_axis": ph.normalize_batch_axis(batch_axis, len(shape), what)}
        return PlaceholderType(what, (cls._base,), fields)


class Numpy(InputType):
    """Return annotation for one ndarray. For a parameter use `Numpy.Placeholder(shape, dtype)`."""

    _base = NumpyDef
