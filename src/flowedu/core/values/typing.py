"""The type names of job functions: `import flowedu.typing as tp`.

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((100, 784)), y: tp.Numpy.Placeholder((100,), flow.int32)) -> tp.Numpy: ...

As a parameter, `Numpy.Placeholder(shape, dtype)`: one array of exactly this shape. As the return annotation, `Numpy`: one
array. core/values/signature.py reads these annotations; containers and lists of arrays: oneflow04/typing.py.
"""
from __future__ import annotations

from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import dtype, float32


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


class PyStructCompatibleToBlob:
    """Base of the types that are a blob inside a job and NumPy outside of it."""


class Fed(PyStructCompatibleToBlob):
    _base: type[PlaceholderDef]

    @classmethod
    def Placeholder(cls, shape: tuple[int, ...], dtype: dtype = float32, batch_axis: int | None = 0) -> type:
        """The annotation of a parameter: what one call must bring.

        Args:
            shape: a tuple; exact for Numpy, the most one device may get for the others.
            dtype: what the array is cast to, without a warning, as in OneFlow 0.3 and 0.4 (0.2 raised TypeError).
            batch_axis: the axis of the samples (None: none); may be negative.
        """
        what = f"{cls.__name__}.Placeholder"
        ph.check_shape_is_tuple(shape, what)
        fields = {"shape": shape, "dtype": ph.element_type(dtype, what),
                  "batch_axis": ph.normal_batch_axis(batch_axis, len(shape), what)}
        return type(cls._base)(what, (cls._base,), fields)


class Numpy(Fed):
    """As a return annotation: one ndarray. As a parameter: `Numpy.Placeholder(shape, dtype)`."""

    _base = NumpyDef
