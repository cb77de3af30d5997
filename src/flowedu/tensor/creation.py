"""Making tensors: from numbers, lists and arrays; filled; counted. In a graph the filled ones become constants."""
from __future__ import annotations

import builtins
import math
import warnings

import numpy as np

from flowedu.core.eager.arrays import copied, copy_of, from_numpy
from flowedu.core.eager.dispatch import new_on_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, default_float, number_type
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import empty as _empty
from flowedu.core.values.thread_state import during
from flowedu.errors import ArgumentError, DTypeError, ShapeError, told_value
from flowedu.errors.element_types import instead
from flowedu.errors.once import inert
from flowedu.tensor import device as gpus
from flowedu.tensor.bfloat16 import of_bits
from flowedu.tensor.destination import finished, where
from flowedu.tensor.device import place_of
from flowedu.tensor.devices import made_on
from flowedu.tensor.dims import reshaped, sizes
from flowedu.tensor.memory_format import checked, like, order_of, out_of_order
from flowedu.tensor.shapes import full_shape  # noqa: F401  (its old place)

_CONSTANT, _RANGE = REGISTRY["constant"], REGISTRY["range"]
listed = sizes


def _kind(dtype) -> dt.dtype | None:
    return None if dtype is None else dt.as_dtype(dtype)


# ---- from data
def tensor(data, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
           pin_memory: bool = False) -> Tensor:
    """Return a tensor with a copy of numbers, nested lists, or an array.

    Floats become the default dtype (float32), ints int64, bools bool; arrays keep their dtype. Lists may
    contain tensors. Raises ShapeError for ragged lists, DTypeError for elements that are not numbers.
    """
    inert("tensor(pin_memory)", bool(pin_memory) and not gpus.gpus(), False, "memory is pinned for a GPU only")
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.clone().detach() or "
                      "sourceTensor.clone().detach().requires_grad_(True), rather than flow.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    made = _made(data, _kind(dtype), True)
    return finished(made.pin_memory() if pin_memory else made, device, requires_grad, placement, sbp)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """The tensor itself, a tensor over the array's memory (also a GPU's, of any object with __cuda_array_interface__), or a
    new one from numbers and lists."""
    kind = _kind(dtype)
    if isinstance(data, Tensor):
        return finished(data if kind is None else cast(data, kind), device)
    if isinstance(data, np.ndarray) and (kind is None or kind.numpy == data.dtype):
        return finished(from_numpy(data), device)
    if hasattr(data, "__cuda_array_interface__"):
        gpus.usable("cuda")
        return as_tensor(gpus.part("exchange").taken(data), dtype, device)
    return finished(_made(data, kind, False), device)


def _made(data, kind, copy):
    if isinstance(data, Tensor):
        data = data.detach()
        return cast(data, kind) if kind is not None and kind is not data.dtype else copy_of(data)
    if hasattr(data, "__cuda_array_interface__"):
        return _made(as_tensor(data), kind, copy)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        return _from_tensors(data, kind)
    known = isinstance(data, (np.ndarray, np.generic))
    try:
        a = np.asarray(data)
    except (ValueError, OverflowError) as e:
        raise ShapeError("tensor: the nested lists are ragged" if isinstance(e, ValueError) else
                         "tensor: a number is too large", expected="lists of one length at each level",
                         got=str(e), fix="pad the shorter ones") from None
    if a.dtype.name == "bfloat16":                   # of the package ml_dtypes
        return cast(of_bits(a), dt.bfloat16 if kind is None else kind)
    if a.dtype.kind in "OSUV":
        raise DTypeError("tensor: the data are no numbers", expected="numbers, or nested lists or an array of them",
                         got=told_value(data) if a.dtype.kind in "SUV" else f"{told_value(data)} of Python objects",
                         fix="flow.tensor([float(word) for word in words]) reads text" if a.dtype.kind in "SU" else
                         "take the numbers out of the objects first")
    if kind is None:
        if a.dtype.kind not in "biuf" or (a.dtype.kind == "u" and a.dtype != np.uint8):
            raise DTypeError(f"tensor: Numpy data type {a.dtype} is not valid to OneFlow data type: no element type",
                             got=repr(data)[:60], fix=instead(a.dtype),
                             expected="bool, int8, uint8, int16, int32, int64, float16, float32 or float64")
        kind = default_float() if not known and (a.dtype == np.float64 or not a.size) else dt.as_dtype(a.dtype)
    elif a.dtype.kind not in "biuf":
        raise DTypeError(f"tensor: Numpy data type {a.dtype} is not valid to OneFlow data type", got=repr(data)[:60],
                         expected="numbers", fix="pass numbers")
    if not isinstance(data, np.ndarray):                 # an array is converted, as x.to(kind) is
        check_range("tensor", kind, *(() if not a.size else (a.min().item(), a.max().item())))
    return copied(a, kind)


def check_range(what: str, kind, *numbers) -> None:
    """Raise DTypeError for numbers whose whole part a whole-number dtype does not hold: 300 for uint8, NaN for int64."""
    if kind.is_floating_point or kind is dt.bool_ or kind.code < 0:
        return
    low, high = kind.limits
    for x in numbers:
        if not (low <= x if isinstance(x, int) else low - 1 < x) or not x < high + 1:
            raise DTypeError(f"{what}: value cannot be converted to type {kind.name} without overflow", got=repr(x)[:40],
                             expected=f"numbers in [{low}, {high}]", fix="dtype=flow.int64, say, or a floating one")


def _holds_tensors(data, depth: int = 0) -> bool:
    if depth > 64:                                                # NumPy's arrays have no more axes; ours fewer
        raise ShapeError("tensor: the lists are nested too deeply, or hold themselves", expected="at most 8 axes",
                         got="64 or more", fix="check how the list was made")
    return builtins.any(isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and _holds_tensors(x, depth + 1))
                        for x in data)


def _from_tensors(data, kind):
    """A nested list that holds tensors: their values, without history; of lazy ones a node that stacks them."""
    from flowedu.tensor.joining import stack
    parts = [x.detach() if isinstance(x, Tensor) else _made(x, kind, True) for x in data]
    return stack([cast(p, kind or parts[0].dtype) for p in parts])


# ---- filled
def empty(*size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
          pin_memory: bool = False, memory_format=None) -> Tensor:
    """Memory as it is found (in a graph: zeros)."""
    inert("empty(pin_memory)", bool(pin_memory) and not gpus.gpus(), False, "memory is pinned for a GPU only")
    shape, kind = sizes(size), _kind(dtype) or default_float()
    if min(shape, default=0) < 0:
        raise ShapeError("empty: Trying to create tensor with negative dimension", expected="sizes of 0 or more",
                         got=str(shape), fix="check the sizes")
    order = order_of("empty", checked("empty", memory_format, preserve=False), shape)
    lying = tuple(shape[d] for d in order)
    place = 0 if device is None else place_of(device)
    if current_interpreter() is not None:
        t = _filled("empty", lying, 0, kind)
    else:
        t = new_on_device(lying, kind, place) if place else _empty(lying, kind, Tensor)
    t = out_of_order(t.pin_memory() if pin_memory else t, order)
    return finished(t, device, requires_grad, placement, sbp)


def _filled(what, shape, value, kind, device=None):
    if device is not None:
        with made_on(place_of(device)):
            return _filled(what, shape, value, kind)
    if min(shape, default=0) < 0:
        raise ShapeError(f"{what}: Trying to create tensor with negative dimension", expected="sizes of 0 or more",
                         got=str(shape), fix="check the sizes")
    if kind is dt.bool_:
        value = bool(value)
    if kind.is_floating_point and kind not in dt.FLOATS:
        return cast(_CONSTANT.call((), (shape, float(value), dt.float32)), kind)
    return _CONSTANT.call((), (shape, value, kind))


def full(size, fill_value, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """`fill_value` everywhere; the dtype is that of the value (float: the default one) unless given."""
    shape = sizes((size,) if isinstance(size, int) else tuple(size))
    value = fill_value.item() if isinstance(fill_value, (Tensor, np.generic)) else fill_value
    kind = _kind(dtype) or (fill_value.dtype if isinstance(fill_value, Tensor) else number_type(value))
    return finished(_filled("full", shape, value, kind, device), device, requires_grad, placement, sbp)


def zeros(*size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """Zeros: zeros(2, 3), zeros((2, 3)); zeros(()) is 0-dim."""
    numbers = _filled("zeros", sizes(size), 0, _kind(dtype) or default_float(), device)
    return finished(numbers, device, requires_grad, placement, sbp)


def ones(*size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """Ones."""
    numbers = _filled("ones", sizes(size), 1, _kind(dtype) or default_float(), device)
    return finished(numbers, device, requires_grad, placement, sbp)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
              memory_format=None) -> Tensor:
    """Return a tensor of `fill_value` with the shape, dtype, and location of another tensor.

    memory_format: contiguous unless given.
    """
    y = full(input.shape, fill_value, dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("full_like", y, memory_format, input), None, requires_grad)


def zeros_like(input, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
               memory_format=None) -> Tensor:
    """Return zeros with the shape, dtype, and location of another tensor. memory_format:
    contiguous unless given.
    """
    y = zeros(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("zeros_like", y, memory_format, input), None, requires_grad)


def ones_like(input, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
              memory_format=None) -> Tensor:
    """Return ones with the shape, dtype, and location of another tensor. memory_format: contiguous
    unless given.
    """
    y = ones(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("ones_like", y, memory_format, input), None, requires_grad)


def empty_like(input, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None,
               memory_format=None) -> Tensor:
    """Return an uninitialized tensor with the shape, dtype, and location of another tensor."""
    y = empty(tuple(input.shape), dtype=dtype or input.dtype, **where(input, device, placement, sbp))
    return finished(like("empty_like", y, memory_format, input), None, requires_grad)


# ---- counted
def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad: bool = False, placement=None,
           sbp=None) -> Tensor:
    """start, start + step, ... before end; arange(end) begins at 0. Whole numbers give int64, a float the default dtype."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    if not all(-math.inf < x < math.inf for x in (start, end, step)):
        raise ArgumentError("arange: a number is not finite", expected="finite numbers", got=f"{start}, {end}, {step}",
                            fix="check start, end and step")
    if step == 0:
        raise ArgumentError("arange: step must be nonzero", expected="a step above or below 0", got="0", fix="step=1")
    if (end - start) * step < 0:
        raise ArgumentError("arange: upper bound and lower bound inconsistent with step sign",
                            got=f"{start}, {end}, {step}",
                            expected="a step that leads from start to end", fix="swap start and end, or the sign of step")
    whole = all(isinstance(x, int) for x in (start, end, step))
    kind = _kind(dtype) or (dt.int64 if whole else default_float())
    n = builtins.max(-(-(end - start) // step) if whole else math.ceil(builtins.min((end - start) / step, 2.0 ** 62)), 0)
    if not kind.is_floating_point and not whole:          # as PyTorch: the values have that dtype
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


def linspace(start: float, end: float, steps: int, *, dtype=None, device=None, requires_grad: bool = False, placement=None,
             sbp=None) -> Tensor:
    """Return `steps` values from start to end, both included.

    For an integer dtype start and end are exact, and the values between are truncated.
    """
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if steps < 0:
        raise ArgumentError("linspace: number of steps must be non-negative", expected="0 or more", got=str(steps),
                            fix="steps=100, say")
    kind, places = _kind(dtype) or default_float(), _RANGE.call((), (0, 1, steps, dt.float64))
    if not kind.is_floating_point:
        check_range("linspace", kind, start, end, float(start), float(end))
        start, end = int(start), int(end)
    width = (end - start) / builtins.max(steps - 1, 1)
    from flowedu.tensor.elementwise import where
    up, down = places * width + float(start), (places - float(steps - 1)) * width + float(end)
    t = where(places < steps // 2, up, down) if steps > 1 else up         # exact at both ends
    return finished(cast(t, kind), device, requires_grad, placement, sbp)


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype=None, device=None,
             requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """`steps` numbers from base^start to base^end. Of a whole dtype start and end are, and the powers are cut to it."""
    kind = _kind(dtype) or default_float()
    if not kind.is_floating_point:
        start, end = int(start), int(end)
    with during(global_mode=None):
        powers = linspace(start, end, steps, dtype=dt.float64)
    t = REGISTRY["pow"](REGISTRY["constant"](shape=(), value=float(base), dtype=dt.float64), powers)
    return finished(cast(t, kind), device, requires_grad, placement, sbp)


def eye(n: int, m: int | None = None, *, dtype=None, device=None, requires_grad: bool = False, placement=None,
        sbp=None) -> Tensor:
    """Ones on the diagonal of an n x m (n x n) matrix."""
    m = n if m is None else m
    if n < 0 or m < 0:
        raise ArgumentError("eye: n and m must be greater or equal to 0", expected="0 or more", got=f"{n}, {m}",
                            fix="flow.eye(3)")
    same = REGISTRY["eq"](reshaped(_RANGE.call((), (0, 1, n, dt.int64)), (n, 1)), _RANGE.call((), (0, 1, m, dt.int64)))
    return finished(cast(same, _kind(dtype) or default_float()), device, requires_grad, placement, sbp)


# ---- methods: in the dtype and on the device of another tensor
def new_tensor(self, data, *, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """flow.tensor(data) in the dtype of this tensor."""
    made = _made(data, _kind(dtype) or self.dtype, True)
    return finished(made, requires_grad=requires_grad, **where(self, device, placement, sbp))


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad: bool = False, placement=None,
             sbp=None) -> Tensor:
    """Return a tensor of this shape filled with one number, by default with self's dtype and location."""
    return full(size, fill_value, dtype=dtype or self.dtype, requires_grad=requires_grad,
                **where(self, device, placement, sbp))


def new_zeros(self, *size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """Return a tensor of zeros, by default with self's dtype and location."""
    return zeros(*size, dtype=dtype or self.dtype, requires_grad=requires_grad, **where(self, device, placement, sbp))


def new_ones(self, *size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """Return a tensor of ones, by default with self's dtype and location."""
    return ones(*size, dtype=dtype or self.dtype, requires_grad=requires_grad, **where(self, device, placement, sbp))


def new_empty(self, *size, dtype=None, device=None, requires_grad: bool = False, placement=None, sbp=None) -> Tensor:
    """Return an uninitialized tensor of this shape, by default with self's dtype and location."""
    return empty(*size, dtype=dtype or self.dtype, requires_grad=requires_grad, **where(self, device, placement, sbp))


# ---- flow.Tensor(...), flow.FloatTensor(...)
def construct(what: str, kind: dt.dtype | None, args: tuple, device=None, placement=None, sbp=None) -> Tensor:
    """Return an uninitialized tensor for sizes, or one with the values of a list, array, or tensor.

    The dtype is `kind` (None: the default).
    """
    kind = kind or default_float()
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, Tensor)) and not (
            isinstance(args[0], tuple) and type(args[0]) is not tuple):
        data = args[0]
        if isinstance(data, Tensor) and data.dtype is not kind and what != "Tensor":
            raise DTypeError(f"{what}: expected a tensor of dtype {kind.name}", expected=kind.name, got=data.dtype.name,
                             fix=f"x.to(flow.{kind.name})")
        return finished(_made(data, kind, True), device, False, placement, sbp)
    try:
        shape = sizes(args) if args else (0,)
    except TypeError:
        raise DTypeError(f"{what}: takes sizes, or one list, array or tensor", expected=f"{what}(2, 3) or {what}([1, 2])",
                         got=repr(args)[:60], fix="flow.tensor(data)") from None
    return empty(shape, dtype=kind, device=device, placement=placement, sbp=sbp)


def _typed(name: str, kind: dt.dtype):
    def make(*args, device=None, placement=None, sbp=None) -> Tensor:
        return construct(name, kind, args, device, placement, sbp)

    make.__name__ = make.__qualname__ = name
    make.dtype = kind                                    # x.type(flow.FloatTensor)
    make.__doc__ = f"A {kind.name} tensor: {name}(2, 3) is uninitialised, {name}([1, 2]) holds these numbers."
    return make


FloatTensor, DoubleTensor, HalfTensor = (_typed(n, d) for n, d in (
    ("FloatTensor", dt.float32), ("DoubleTensor", dt.float64), ("HalfTensor", dt.float16)))
IntTensor, LongTensor, ShortTensor, CharTensor, ByteTensor, BoolTensor = (_typed(n, d) for n, d in (
    ("IntTensor", dt.int32), ("LongTensor", dt.int64), ("ShortTensor", dt.int16), ("CharTensor", dt.int8),
    ("ByteTensor", dt.uint8), ("BoolTensor", dt.bool_)))
BFloat16Tensor = _typed("BFloat16Tensor", getattr(dt, "bfloat16", dt.float16))
