"""Errors of tensor buffers and tensor lists, for core to raise."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowedu.errors import DTypeError, ShapeError, UnsupportedError


def wrong_number_of_arrays(arrays: Sequence, shape: Sequence) -> ShapeError:
    return ShapeError("TensorBuffer: the number of arrays does not fit the shape",
                      got=f"{len(arrays)} arrays", expected=f"{math.prod(shape)} arrays for the shape "
                      f"{shape}", fix="leave shape out for one axis, or pass as many arrays as it counts")


def no_length() -> ShapeError:
    return ShapeError("len() of a TensorBuffer of shape ()", expected="at least one axis", got="()",
                      fix="buffer.items[0] is its only array")


def wrong_instance_shape(op: str, instance: str, expected: Any, got: Any) -> ShapeError:
    return ShapeError(f"{op}: {instance} has another shape", expected=str(expected), got=str(got),
                      fix="resize or pad the tensors to one shape first: flow.image.Resize, batch_align")


def not_one_array(buffer: Any) -> UnsupportedError:
    return UnsupportedError("a TensorBuffer is not one array: its tensors differ in shape",
                            expected="a tensor", got=repr(buffer), fix="flow.tensor_buffer_to_tensor once "
                            "all have one shape, flow.tensor_buffer_to_list_of_tensors otherwise")


def empty_list() -> DTypeError:
    return DTypeError("TensorList: an empty list has no element type", expected="dtype=flow.float32, say",
                      got="no arrays and no dtype", fix="TensorList([], dtype=flow.float32)")


def mixed_ranks(i: int, array: Any, rank: int) -> ShapeError:
    return ShapeError(f"TensorList: tensor {i} has another rank",
                      got=f"rank {array.ndim}, {array.shape}", expected=f"rank {max(rank, 1)}, as tensor 0",
                      fix="reshape it; lists take different sizes, not ranks")


def mixed_dtypes(i: int, dtype: Any, first_dtype: Any) -> DTypeError:
    return DTypeError(f"TensorList: tensor {i} has another element type", got=dtype,
                      expected=f"{first_dtype}, as tensor 0", fix="pass dtype= to have all cast")


def wrong_dtype(op: str, where: str, expected: Any, got: Any) -> DTypeError:
    """Return the error for a tensor of a buffer with another dtype; `got` is a NumPy dtype."""
    return DTypeError(f"{op}: {where} has another element type", expected=expected.name, got=got.name,
                      fix=f"ask for dtype=flow.{got.name}, or make them {expected.name} where they come "
                      f"from: flow.image.decode(..., dtype=flow.{expected.name}), say")
