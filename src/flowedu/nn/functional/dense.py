"""The functions linear, bilinear, and embedding."""
from __future__ import annotations

from typing import Any

from flowedu.core.ops import elementwise
from flowedu.core.ops import matmul as matmul_ops
from flowedu.core.ops.elementwise import abs as abs_op
from flowedu.core.ops.elementwise import greater, maximum, minimum
from flowedu.core.ops.promote import cast, operate
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import constant
from flowedu.core.values import dtype as dt
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, DTypeError, KernelError, OutOfRangeError, ShapeError
from flowedu.errors.element_types import mixed
from flowedu.errors.once import inert
from flowedu.nn.functional.common import Ints, check_tensor, reshaped
from flowedu.ops import index
from flowedu.ops.index import gather_grad
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of

# Global variables, for the fastest calls (see common.py).
_MATMUL, _ADD = matmul_ops.matmul, elementwise.add
_TRANSPOSED = _MATMUL.complete({"transpose_b": True})


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weight.T + bias.

    Args:
        input: (*, in).
        weight: (out, in), or (in,) for a result without the last axis.
        bias: (out,); default: no bias.

    Returns:
        A tensor (*, out).

    Raises:
        ShapeError (a RuntimeError): the last axes of input and weight have different sizes.
        DTypeError: the dtypes differ.
    """
    try:
        if input.ndim < 2 or weight.ndim != 2:
            return _linear_of_vectors(input, weight, bias)
        y = _MATMUL.call((input, weight), _TRANSPOSED)
    except (AttributeError, ShapeError, DTypeError):
        _check_linear(input, weight)
        raise
    if bias is None:
        return y
    if thread_state.amp is not None:
        bias = cast(bias, y.dtype)
    return _ADD.call((y, bias), ()) if bias.dtype is y.dtype else operate(_ADD, y, bias)


def _check_linear(input: Any, weight: Any) -> None:
    """Raise a layer's error for inputs that the product rejected."""
    check_tensor("linear", input)
    check_tensor("linear", weight, "weight")
    shape = input.shape
    if weight.ndim == 2 <= len(shape) and shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, shape))} "
                         f"and {weight.shape[1]}x{weight.shape[0]})",
                         expected=f"an input whose last axis has {weight.shape[1]} elements",
                         got=f"input {tuple(shape)}, weight {tuple(weight.shape)}",
                         fix=f"nn.Linear({shape[-1]}, {weight.shape[0]}), or reshape the input") from None
    if input.dtype is not weight.dtype:
        raise DTypeError(f"linear: mat1 and mat2 must have the same dtype, but got {input.dtype!r} and "
                         f"{weight.dtype!r}", expected=f"an input of {weight.dtype!r}", got=repr(input.dtype),
                         fix=mixed(f"input.to(flow.{weight.dtype.name})" + (
                             f", or model.to(flow.{input.dtype.name})" if input.dtype.is_floating_point
                             else ""),
                             input.dtype, weight.dtype)) from None


def _linear_of_vectors(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    check_tensor("linear", input)
    if not input.ndim or weight.ndim not in (1, 2):
        raise ShapeError("linear: the inputs do not fit", expected="input (*, in), weight (out, in) or (in,)",
                         got=f"input {tuple(input.shape)}, weight {tuple(weight.shape)}",
                         fix="reshape a number to (1,)")
    matrix = weight if weight.ndim == 2 else reshaped(weight, (1, weight.shape[0]))
    x = input if input.ndim > 1 else reshaped(input, (1, input.shape[0]))
    y = linear(x, matrix)
    shape = (*input.shape[:-1], *weight.shape[:-1])
    y = reshaped(y, shape)
    return y if bias is None else y + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x1.T @ W @ x2 + bias for each matrix W of the weight.

    Args:
        input1: (*, in1).
        input2: (*, in2).
        weight: (out, in1, in2).
        bias: (out,); default: no bias.

    Returns:
        A tensor (*, out).
    """
    if weight.ndim != 3 or input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2] \
            or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError("bilinear: the inputs do not fit",
                         expected="input1 (*, in1), input2 (*, in2), weight (out, in1, in2)",
                         got=f"{tuple(input1.shape)}, {tuple(input2.shape)}, {tuple(weight.shape)}",
                         fix="nn.Bilinear(in1, in2, out) makes a weight that fits")
    out, in1, in2 = weight.shape
    lead = tuple(input1.shape[:-1])
    a, b = reshaped(input1, (_rows(lead), in1)), reshaped(input2, (_rows(lead), in2))
    left = _MATMUL(a, reshaped(weight.permute(1, 0, 2).contiguous(), (in1, out * in2)))
    y = sum_op(reshaped(left, (a.shape[0], out, in2)) * reshaped(b, (a.shape[0], 1, in2)), axis=(2,))
    y = reshaped(y, (*lead, out))
    return y if bias is None else y + bias


def _rows(lead: Ints) -> int:
    n = 1
    for k in lead:
        n *= k
    return n


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Return the rows of `weight` that `input` selects.

    Args:
        input: indices, int32 or int64, of any shape.
        weight: the table, (rows, size).
        padding_idx: row that gets no gradient; default: none.
        max_norm: largest norm of a selected row; default: no limit. Rows with a larger norm are scaled down
            in place before they are read (eager mode only).
        norm_type: order p of the norm that `max_norm` limits.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses in the batch.
        sparse: accepted for compatibility, with a warning; gradients are dense.

    Returns:
        A tensor (*input.shape, size).

    Raises:
        OutOfRangeError (an IndexError and RuntimeError): an index is outside [0, rows).
        DTypeError: input is not an integer tensor.
    """
    inert("nn.functional.embedding(sparse)", bool(sparse), False, "gradients are dense")
    check_tensor("embedding", input)
    if weight.ndim != 2:
        raise ShapeError("embedding: 'weight' must be 2-D", expected="(rows, size)",
                         got=str(tuple(weight.shape)), fix="flow.randn(rows, size)")
    if input.dtype not in (dt.int32, dt.int64):
        if input.dtype not in (dt.int8, dt.uint8):
            raise DTypeError("embedding: the indices are not integers", expected="int32 or int64",
                             got=repr(input.dtype), fix="input.long()")
        input = cast(input, dt.int64)
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ArgumentError("embedding: Padding_idx must be within num_embeddings",
                            expected=f"an int in [{-rows}, {rows - 1}]",
                            got=str(padding_idx), fix="-1 is the last row")
    if scale_grad_by_freq and weight.requires_grad:
        share = 1.0 / reshaped(maximum(_used(input, weight), 1.0), (rows, 1))
        weight = weight * share + (weight * (1.0 - share)).detach()
    try:
        y = index.gather.call((weight, input), (0,))
    except KernelError as e:
        raise OutOfRangeError(f"embedding: index out of range ({e.problem})", expected=f"0 <= index < {rows}",
                          got=f"weight {tuple(weight.shape)}",
                              fix="a table with more rows, or other indices") from None
    if padding_idx is None or not y.requires_grad:
        return y
    padding = E.eq(input, padding_idx % rows)
    return elementwise.where.call((reshaped(padding, (*input.shape, 1)), y.detach(), y), ())


def _used(input: Tensor, weight: Tensor) -> Tensor:
    """Return the number of uses of each row, in the dtype of weight."""
    with use_device_of(input):
        ones = constant(shape=tuple(input.shape), value=1.0, dtype=weight.dtype)
    return gather_grad(ones, input, axis=0, size=weight.shape[0])


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the used rows whose norm exceeds max_norm down to it, in place."""
    with no_grad():
        x = abs_op(weight)
        norm = sum_op(x * x if norm_type == 2 else x ** norm_type, axis=(1,),
                      keepdims=True) ** (1.0 / norm_type)
        used = minimum(reshaped(_used(input, weight), (weight.shape[0], 1)), 1.0)
        long = greater(norm * used, float(max_norm))
        weight.copy_(elementwise.where(long, weight * (max_norm / (norm + 1e-7)), weight))
