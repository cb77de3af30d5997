"""Conversion of dtypes to NumPy, with OneFlow 0.4's name."""
from __future__ import annotations

import numpy as np

from flowedu.core.values.dtype import dtype
from flowedu.errors import DTypeError, UnsupportedError


def convert_oneflow_dtype_to_numpy_dtype(d: dtype) -> np.dtype:
    """Return the NumPy dtype of a flowedu dtype.

    Args:
        d: a dtype such as flow.float32.

    Raises:
        UnsupportedError: `d` is record or tensor_buffer, which have no NumPy dtype. The error is a
            NotImplementedError.
        DTypeError: `d` is not a dtype of flowedu.
    """
    what = "convert_oneflow_dtype_to_numpy_dtype"
    if not isinstance(d, dtype):
        raise DTypeError(f"{what}: not an element type of flowedu", expected="flow.float32, say", got=repr(d),
                         fix="np.dtype(d) gives the dtype of what NumPy knows")
    if d.numpy is None:
        raise UnsupportedError(f"{what}: {d.name} has no NumPy counterpart", expected="a numeric dtype",
                               got=repr(d), fix="flow.tensor_buffer_to_tensor or a decoder of records gives "
                               "numbers")
    return d.numpy
