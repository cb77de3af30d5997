"""Creation of tensors from data, with constant values, and with ranges. In a graph, constants become nodes.
"""
from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import copied, copy_of, from_numpy
from flowedu.core.eager.dispatch import new_on_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import concat, elementwise, view
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.promote import cast, default_float, number_type
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import empty as _empty
from flowedu.core.values.thread_state import during
from flowedu.errors import ArgumentError, DTypeError, ShapeError, format_value
from flowedu.errors.element_types import instead
from flowedu.errors.once import inert
from flowedu.ops import order as order_ops
from flowedu.tensor.arguments.dims import reshaped, sizes
from flowedu.tensor.arguments.types import Device, Number, Placement, Sbp, Sizes
from flowedu.tensor.construction.destination import finished, where
from flowedu.tensor.devices import device as gpus
from flowedu.tensor.devices.conversion import made_on
from flowedu.tensor.devices.device import place_of
from flowedu.tensor.devices.memory_format import checked, clone, like, memory_format, order_of, out_of_order
from flowedu.tensor.dtypes.bfloat16 import of_bits

_CONCAT, _CONSTANT, _RANGE = concat.concat, view.constant, order_ops.range
listed = sizes


def _kind(dtype: dt.dtype | None) -> dt.dtype | None:
    return None if dtype is None else dt.as_dtype(dtype)


# ---- tensors from data
def tensor(data: Any, *, dtype: dt.dtype | None = None, device: Device | None = None,
           requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None,
           pin_memory: bool = False) -> Tensor:
    """Return a tensor with a copy of the data.

    Args:
        data: number, nested list, or array. Lists may contain tensors.
        dtype: dtype; default: the dtype of an array. For numbers and lists it is the default dtype for
            floats, int64 for ints, and bool for bools.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
        pin_memory: allocate pinned memory, which a GPU reads directly.

    Raises:
        ShapeError: the lists are ragged.
        DTypeError: an element is not a number.
    """
    inert("tensor(pin_memory)", bool(pin_memory) and not gpus.gpus(), False,
          "memory is pinned for a GPU only")
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use "
                      "sourceTensor.clone().detach() or sourceTensor.clone().detach().requires_grad_(True), "
                      "rather than flow.tensor(sourceTensor).", UserWarning, stacklevel=2)
    made = _make_tensor(data, _kind(dtype), True)
    return finished(made.pin_memory() if pin_memory else made, device, requires_grad, placement, sbp)


def as_tensor(data: Any, dtype: dt.dtype | None = None, device: Device | None = None) -> Tensor:
    """Return a tensor of the data, without a copy if possible.

    Args:
        data: a tensor, which is returned unchanged; an array, whose memory is shared; or numbers and lists.
            The array may be on a GPU if it has __cuda_array_interface__.
        dtype: dtype; default: that of the data.
        device: device; default: that of the data.
    """
    kind = _kind(dtype)
    if isinstance(data, Tensor):
        return finished(data if kind is None else cast(data, kind), device)
    if isinstance(data, np.ndarray) and (kind is None or kind.numpy == data.dtype):
        return finished(from_numpy(data), device)
    if hasattr(data, "__cuda_array_interface__"):
        gpus.usable("cuda")
        return as_tensor(gpus.part("exchange").import_array(data), dtype, device)
    return finished(_make_tensor(data, kind, False), device)


def _make_tensor(data: Any, kind: dt.dtype | None, copy: bool) -> Tensor:
    if isinstance(data, Tensor):
        data = data.detach()
        return cast(data, kind) if kind is not None and kind is not data.dtype else copy_of(data)
    if hasattr(data, "__cuda_array_interface__"):
        return _make_tensor(as_tensor(data), kind, copy)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        return _from_tensors(data, kind)
    known = isinstance(data, (np.ndarray, np.generic))
    try:
        a = np.asarray(data)
    except (ValueError, OverflowError) as e:
        raise ShapeError("tensor: the nested lists are ragged" if isinstance(e, ValueError) else
                         "tensor: a number is too large", expected="lists of one length at each level",
                         got=str(e), fix="pad the shorter ones") from None
    if a.dtype.name == "bfloat16":                   # dtype of the package ml_dtypes
        return cast(of_bits(a), dt.bfloat16 if kind is None else kind)
    if a.dtype.kind in "OSUV":
        raise DTypeError("tensor: the data are no numbers",
                         expected="numbers, or nested lists or an array of them",
                         got=format_value(data) if a.dtype.kind in "SUV"
                         else f"{format_value(data)} of Python objects",
                         fix="flow.tensor([float(word) for word in words]) reads text" if a.dtype.kind in "SU"
                         else
                         "take the numbers out of the objects first")
    if kind is None:
        if a.dtype.kind not in "biuf" or (a.dtype.kind == "u" and a.dtype != np.uint8):
            raise DTypeError(f"tensor: Numpy data type {a.dtype} is not valid to OneFlow data type: no "
                             f"element type", got=repr(data)[:60], fix=instead(a.dtype),
                             expected="bool, int8, uint8, int16, int32, int64, float16, float32 or float64")
        kind = (default_float() if not known and (a.dtype == np.float64 or not a.size)
                else dt.as_dtype(a.dtype))
    elif a.dtype.kind not in "biuf":
        raise DTypeError(f"tensor: Numpy data type {a.dtype} is not valid to OneFlow data type",
                         got=repr(data)[:60], expected="numbers", fix="pass numbers")
    if not isinstance(data, np.ndarray):                 # same conversion as x.to(kind)
        check_range("tensor", kind, *(() if not a.size else (a.min().item(), a.max().item())))
    return copied(a, kind)


def check_range(what: str, kind: dt.dtype, *numbers: Number) -> None:
    """Raise DTypeError for numbers that an integer dtype cannot represent, such as 300 for uint8."""
    if kind.is_floating_point or kind is dt.bool_ or kind.code < 0:
        return
    low, high = kind.limits
    for x in numbers:
        if not (low <= x if isinstance(x, int) else low - 1 < x) or not x < high + 1:
            raise DTypeError(f"{what}: value cannot be converted to type {kind.name} without overflow",
                             got=repr(x)[:40],
                             expected=f"numbers in [{low}, {high}]",
                             fix="dtype=flow.int64, say, or a floating one")


def _holds_tensors(data: Any, depth: int = 0) -> bool:
    # The limit of NumPy arrays; tensors have a lower one.
    if depth > 64:
        raise ShapeError("tensor: the lists are nested too deeply, or hold themselves",
                         expected="at most 8 axes", got="64 or more", fix="check how the list was made")
    return builtins.any(isinstance(x, Tensor) or (isinstance(x, (list, tuple))
                                                  and _holds_tensors(x, depth + 1))
                        for x in data)


def _from_tensors(data: Sequence, kind: dt.dtype | None) -> Tensor:
    """Return the values of a nested list that contains tensors, without history; a node stacks lazy ones."""
    parts = [x.detach() if isinstance(x, Tensor) else _make_tensor(x, kind, True) for x in data]
    shape, dtype = parts[0].shape, kind or parts[0].dtype
    for i, part in enumerate(parts):
        if part.shape != shape:
            raise ShapeError(f"tensor: the entries of a list have different shapes: {tuple(shape)} at "
                             f"entry 0 and {tuple(part.shape)} at entry {i}", expected="equal shapes",
                             got=str(tuple(part.shape)), fix="flow.cat joins tensors along an axis they have")
    rows = tuple(reshaped(cast(part, dtype), (1, *shape)) for part in parts)
    return _CONCAT.call(rows, (0,)) if len(rows) > 1 else clone(rows[0])


# ---- constant tensors
def empty(*size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
          requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None,
          pin_memory: bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Return a tensor with uninitialized values (in a graph: zeros).

    Args:
        *size: sizes of the axes.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
        pin_memory: allocate pinned memory, which a GPU reads directly.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    inert("empty(pin_memory)", bool(pin_memory) and not gpus.gpus(), False, "memory is pinned for a GPU only")
    shape, kind = sizes(size), _kind(dtype) or default_float()
    if min(shape, default=0) < 0:
        raise ShapeError("empty: Trying to create tensor with negative dimension",
                         expected="sizes of 0 or more", got=str(shape), fix="check the sizes")
    order = order_of("empty", checked("empty", memory_format, preserve=False), shape)
    lying = tuple(shape[d] for d in order)
    place = 0 if device is None else place_of(device)
    if current_interpreter() is not None:
        t = _filled("empty", lying, 0, kind)
    else:
        t = new_on_device(lying, kind, place) if place else _empty(lying, kind, Tensor)
    t = out_of_order(t.pin_memory() if pin_memory else t, order)
    return finished(t, device, requires_grad, placement, sbp)


def _filled(what: str, shape: tuple[int, ...], value: Number, kind: dt.dtype,
            device: Device | None = None) -> Tensor:
    if device is not None:
        with made_on(place_of(device)):
            return _filled(what, shape, value, kind)
    if min(shape, default=0) < 0:
        raise ShapeError(f"{what}: Trying to create tensor with negative dimension",
                         expected="sizes of 0 or more", got=str(shape), fix="check the sizes")
    if kind is dt.bool_:
        value = bool(value)
    if kind.is_floating_point and kind not in dt.FLOATS:
        return cast(_CONSTANT.call((), (shape, float(value), dt.float32)), kind)
    return _CONSTANT.call((), (shape, value, kind))


def full(size: int | Sequence[int], fill_value: Number | Tensor, *, dtype: dt.dtype | None = None,
         device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
         sbp: Sbp | None = None) -> Tensor:
    """Return a tensor filled with a number.

    Args:
        size: sizes of the axes.
        fill_value: the number.
        dtype: dtype; default: that of the number (the default dtype for floats).
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    shape = sizes((size,) if isinstance(size, int) else tuple(size))
    value = fill_value.item() if isinstance(fill_value, (Tensor, np.generic)) else fill_value
    kind = _kind(dtype) or (fill_value.dtype if isinstance(fill_value, Tensor) else number_type(value))
    return finished(_filled("full", shape, value, kind, device), device, requires_grad, placement, sbp)


def zeros(*size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
          requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return a tensor of zeros.

    Args:
        *size: sizes of the axes: zeros(2, 3) or zeros((2, 3)); zeros(()) is 0-dim.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    numbers = _filled("zeros", sizes(size), 0, _kind(dtype) or default_float(), device)
    return finished(numbers, device, requires_grad, placement, sbp)


def ones(*size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
         requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return a tensor of ones.

    Args:
        *size: sizes of the axes.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    numbers = _filled("ones", sizes(size), 1, _kind(dtype) or default_float(), device)
    return finished(numbers, device, requires_grad, placement, sbp)


def full_like(input: Tensor, fill_value: Number | Tensor, *, dtype: dt.dtype | None = None,
              device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
              sbp: Sbp | None = None, memory_format: memory_format | None = None) -> Tensor:
    """Return a tensor of the shape of another one, filled with a number.

    Args:
        input: tensor that provides the shape.
        fill_value: the number.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    y = full(input.shape, fill_value, dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("full_like", y, memory_format, input), None, requires_grad)


def zeros_like(input: Tensor, *, dtype: dt.dtype | None = None, device: Device | None = None,
               requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None,
               memory_format: memory_format | None = None) -> Tensor:
    """Return a tensor of zeros with the shape of another one.

    Args:
        input: tensor that provides the shape.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    y = zeros(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("zeros_like", y, memory_format, input), None, requires_grad)


def ones_like(input: Tensor, *, dtype: dt.dtype | None = None, device: Device | None = None,
              requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None,
              memory_format: memory_format | None = None) -> Tensor:
    """Return a tensor of ones with the shape of another one.

    Args:
        input: tensor that provides the shape.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    y = ones(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("ones_like", y, memory_format, input), None, requires_grad)


def empty_like(input: Tensor, *, dtype: dt.dtype | None = None, device: Device | None = None,
               requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None,
               memory_format: memory_format | None = None) -> Tensor:
    """Return an uninitialized tensor with the shape of another one.

    Args:
        input: tensor that provides the shape.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
        memory_format: order of the elements in memory; default: that of the input.
    """
    y = empty(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("empty_like", y, memory_format, input), None, requires_grad)


# ---- ranges
def arange(start: Number, end: Number | None = None, step: Number = 1, *, dtype: dt.dtype | None = None,
           device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
           sbp: Sbp | None = None) -> Tensor:
    """Return the vector start, start + step, ..., which ends before `end`.

    Args:
        start: first value; arange(end) starts at 0.
        end: limit, not included.
        step: difference between neighbors.
        dtype: dtype; default: int64 for integers, the default dtype for floats.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    if not all(-math.inf < x < math.inf for x in (start, end, step)):
        raise ArgumentError("arange: a number is not finite", expected="finite numbers",
                            got=f"{start}, {end}, {step}", fix="check start, end and step")
    if step == 0:
        raise ArgumentError("arange: step must be nonzero", expected="a step above or below 0", got="0",
                            fix="step=1")
    if (end - start) * step < 0:
        raise ArgumentError("arange: upper bound and lower bound inconsistent with step sign",
                            got=f"{start}, {end}, {step}",
                            expected="a step that leads from start to end",
                            fix="swap start and end, or the sign of step")
    whole = all(isinstance(x, int) for x in (start, end, step))
    kind = _kind(dtype) or (dt.int64 if whole else default_float())
    n = builtins.max(-(-(end - start) // step) if whole else math.ceil(builtins.min((end - start) / step,
                                                                                    2.0 ** 62)), 0)
    if not kind.is_floating_point and not whole:          # as in PyTorch, the values have that dtype
        begin, stride = int(start), int(step)
        if kind is dt.int64 and stride:
            n = builtins.max(-(-(int(end) - begin) // stride), 0)
        start, step, whole = begin, stride, True
    if n:
        check_range("arange", kind, start, start + (n - 1) * step)
    if whole and kind.code in (0, 1, 2, 3):
        t = _RANGE.call((), (start, step, n, kind))
    else:
        t = cast(_RANGE.call((), (0, 1, n, dt.float64)) * float(step) + float(start), kind)
    return finished(t, device, requires_grad, placement, sbp)


def linspace(start: float, end: float, steps: int, *, dtype: dt.dtype | None = None,
             device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
    """Return a vector of evenly spaced values, including both ends.

    Args:
        start: first value.
        end: last value.
        steps: number of values.
        dtype: dtype; default: the default dtype. An integer dtype truncates the values between the ends.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if steps < 0:
        raise ArgumentError("linspace: number of steps must be non-negative", expected="0 or more",
                            got=str(steps), fix="steps=100, say")
    kind, places = _kind(dtype) or default_float(), _RANGE.call((), (0, 1, steps, dt.float64))
    if not kind.is_floating_point:
        check_range("linspace", kind, start, end, float(start), float(end))
        start, end = int(start), int(end)
    width = (end - start) / builtins.max(steps - 1, 1)
    up, down = places * width + float(start), (places - float(steps - 1)) * width + float(end)
    # exact at both ends
    t = elementwise.where.call((places < steps // 2, up, down), ()) if steps > 1 else up
    return finished(cast(t, kind), device, requires_grad, placement, sbp)


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: dt.dtype | None = None,
             device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
    """Return a vector of powers with evenly spaced exponents, from base^start to base^end.

    Args:
        start: first exponent.
        end: last exponent.
        steps: number of values.
        base: base of the powers.
        dtype: dtype; default: the default dtype. An integer dtype truncates start, end, and the powers.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    kind = _kind(dtype) or default_float()
    if not kind.is_floating_point:
        start, end = int(start), int(end)
    with during(global_mode=None):
        powers = linspace(start, end, steps, dtype=dt.float64)
    t = elementwise.pow(_CONSTANT(shape=(), value=float(base), dtype=dt.float64), powers)
    return finished(cast(t, kind), device, requires_grad, placement, sbp)


def eye(n: int, m: int | None = None, *, dtype: dt.dtype | None = None, device: Device | None = None,
        requires_grad: bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return an n x m matrix with ones on the diagonal.

    Args:
        n: number of rows.
        m: number of columns; default: n.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    m = n if m is None else m
    if n < 0 or m < 0:
        raise ArgumentError("eye: n and m must be greater or equal to 0", expected="0 or more",
                            got=f"{n}, {m}", fix="flow.eye(3)")
    same = elementwise.eq(reshaped(_RANGE.call((), (0, 1, n, dt.int64)), (n, 1)),
                          _RANGE.call((), (0, 1, m, dt.int64)))
    return finished(cast(same, _kind(dtype) or default_float()), device, requires_grad, placement, sbp)


# ---- methods that use the dtype and device of another tensor
def new_tensor(self: Tensor, data: Any, *, dtype: dt.dtype | None = None, device: Device | None = None,
               requires_grad: bool = False, placement: Placement | None = None,
               sbp: Sbp | None = None) -> Tensor:
    """Return flow.tensor(data), by default with the dtype and location of this tensor.

    Args:
        data: number, nested list, or array.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
    """
    made = _make_tensor(data, _kind(dtype) or self.dtype, True)
    return finished(made, requires_grad=requires_grad, **where(self, device, placement, sbp))


def new_full(self: Tensor, size: int | Sequence[int], fill_value: Number | Tensor, *,
             dtype: dt.dtype | None = None, device: Device | None = None, requires_grad: bool = False,
             placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return a tensor filled with a number, by default with the dtype and location of this tensor.

    Args:
        size: sizes of the axes.
        fill_value: the number.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
    """
    return full(size, fill_value, dtype=dtype or self.dtype, requires_grad=requires_grad,
                **where(self, device, placement, sbp))


def new_zeros(self: Tensor, *size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
              requires_grad: bool = False, placement: Placement | None = None,
              sbp: Sbp | None = None) -> Tensor:
    """Return a tensor of zeros, by default with the dtype and location of this tensor.

    Args:
        *size: sizes of the axes.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
    """
    return zeros(*size, dtype=dtype or self.dtype, requires_grad=requires_grad,
                 **where(self, device, placement, sbp))


def new_ones(self: Tensor, *size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
             requires_grad: bool = False, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
    """Return a tensor of ones, by default with the dtype and location of this tensor.

    Args:
        *size: sizes of the axes.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
    """
    return ones(*size, dtype=dtype or self.dtype, requires_grad=requires_grad,
                **where(self, device, placement, sbp))


def new_empty(self: Tensor, *size: Sizes, dtype: dt.dtype | None = None, device: Device | None = None,
              requires_grad: bool = False, placement: Placement | None = None,
              sbp: Sbp | None = None) -> Tensor:
    """Return an uninitialized tensor, by default with the dtype and location of this tensor.

    Args:
        *size: sizes of the axes.
        dtype: dtype; default: that of the input.
        device: device of the tensor; default: that of the input.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: that of the input.
        sbp: layout of a global tensor; default: that of the input.
    """
    return empty(*size, dtype=dtype or self.dtype, requires_grad=requires_grad,
                 **where(self, device, placement, sbp))


# ---- flow.Tensor(...), flow.FloatTensor(...)
def construct(what: str, kind: dt.dtype | None, args: tuple, device: Device | None = None,
              placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return an uninitialized tensor of given sizes, or a tensor with the values of a list, array, or tensor.

    The dtype is `kind`, or the default dtype if `kind` is None.
    """
    kind = kind or default_float()
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, Tensor)) and not (
            isinstance(args[0], tuple) and type(args[0]) is not tuple):
        data = args[0]
        if isinstance(data, Tensor) and data.dtype is not kind and what != "Tensor":
            raise DTypeError(f"{what}: expected a tensor of dtype {kind.name}", expected=kind.name,
                             got=data.dtype.name, fix=f"x.to(flow.{kind.name})")
        return finished(_make_tensor(data, kind, True), device, False, placement, sbp)
    try:
        shape = sizes(args) if args else (0,)
    except TypeError:
        raise DTypeError(f"{what}: takes sizes, or one list, array or tensor",
                         expected=f"{what}(2, 3) or {what}([1, 2])",
                         got=repr(args)[:60], fix="flow.tensor(data)") from None
    return empty(shape, dtype=kind, device=device, placement=placement, sbp=sbp)


def _typed(name: str, kind: dt.dtype) -> Callable[..., Tensor]:
    """Return the constructor `flow.<name>` of tensors of one dtype."""
    def make(*args: Any, device: Device | None = None, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
        return construct(name, kind, args, device, placement, sbp)

    make.__name__ = make.__qualname__ = name
    # x.type(flow.FloatTensor) reads it.
    make.dtype = kind  # type: ignore[attr-defined]  # an attribute of a function
    make.__doc__ = f"""Return a tensor of dtype {kind.name}.

    Args:
        *args: sizes or data. {name}(2, 3) returns an uninitialized tensor; {name}([1, 2]) contains the data.
        device: device of the tensor; default: the CPU.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    return make


FloatTensor = _typed("FloatTensor", dt.float32)
DoubleTensor = _typed("DoubleTensor", dt.float64)
HalfTensor = _typed("HalfTensor", dt.float16)
IntTensor = _typed("IntTensor", dt.int32)
LongTensor = _typed("LongTensor", dt.int64)
ShortTensor = _typed("ShortTensor", dt.int16)
CharTensor = _typed("CharTensor", dt.int8)
ByteTensor = _typed("ByteTensor", dt.uint8)
BoolTensor = _typed("BoolTensor", dt.bool_)
BFloat16Tensor = _typed("BFloat16Tensor", getattr(dt, "bfloat16", dt.float16))
