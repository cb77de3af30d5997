"""Type promotion and operators, for tensors and symbolic values (core/ops/value.py).

Promotion follows PyTorch: bool < uint8, int8 < int16 < int32 < int64 < float16, bfloat16 < float32
< float64. A 0-dim tensor or a Python number counts only if its category (bool < integer < floating)
is higher than that of the tensors with axes. uint8 with int8 gives int16, which holds both.

Kernels exist for float32, float64, int32, and int64; elementwise kernels also for int8, uint8,
int16, and 16-bit floats (one rounding per op). Other ops cast to a wider dtype (carrier) and back.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flowedu.core.ops.call import current_interpreter, engine
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Operand
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import FLOATS, NUMBERS
from flowedu.core.values.storage import Array
from flowedu.errors import NotATensorError
from flowedu.errors import ops as errors

_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64")
_RANK = {name: i for i, name in enumerate(_ORDER)}
ELEMENTWISE = {"bool": dt.uint8}                # carriers of elementwise ops; comparisons need none
REDUCING = dict.fromkeys(("bool", "int8", "uint8", "int16"), dt.int32)   # carriers of all other ops

DIVIDING: set[Op] = set()                         # integer ops that are undefined for divisor 0
_WRAPPING = {"add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"}  # ops that wrap
default_float = dt.get_default_dtype              # returns the dtype of Python floats


@functools.cache
def promote(a: dt.dtype, b: dt.dtype) -> dt.dtype:
    """Return the promoted dtype of two dtypes."""
    pair = {a.name, b.name}
    if pair == {"uint8", "int8"}:
        return dt.int16
    if pair == {"float16", "bfloat16"}:
        return dt.float32
    return a if _RANK[a.name] >= _RANK[b.name] else b


def category(d: dt.dtype) -> int:
    if d.is_floating_point:
        return 2
    return 0 if d is dt.bool_ else 1


def _combine(high: dt.dtype | None, low: dt.dtype | None) -> dt.dtype | Any:
    """Return `high`, or the promoted dtype if the category of `low` is higher."""
    if high is None or low is None:
        return low if high is None else high
    return promote(high, low) if category(low) > category(high) else high


def number_type(x: object) -> dt.dtype:
    """Return the dtype of a Python number."""
    if isinstance(x, (bool, np.bool_)):
        return dt.bool_
    return dt.int64 if isinstance(x, (int, np.integer)) else default_float()


def is_number(x: object) -> bool:
    """Return True if x is a Python or NumPy number."""
    return isinstance(x, (bool, int, float, np.generic)) and not isinstance(x, (str, bytes))


def is_value(x: object) -> bool:
    """Return True if x is a tensor, a value of a graph, or a symbol of a formula."""
    return isinstance(x, Array) or hasattr(x, "spec")


def result_type(*operands: Operand) -> dt.dtype:
    """Return the dtype of the result of an op on these operands.

    Args:
        *operands: tensors, numbers, and dtypes. A dtype counts as a tensor with axes.
    """
    arrays = zeros = numbers = None
    for x in operands:
        if is_value(x):
            if x.ndim:
                arrays = x.dtype if arrays is None else promote(arrays, x.dtype)
            else:
                zeros = x.dtype if zeros is None else promote(zeros, x.dtype)
        elif isinstance(x, dt.dtype):
            arrays = x if arrays is None else promote(arrays, x)
        else:
            d = number_type(x)
            numbers = d if numbers is None else promote(numbers, d)
    return _combine(arrays, _combine(zeros, numbers))


# ---- numbers and other operands as tensors
def _wrap_or_clamp(value: int, low: int, high: int, what: str) -> int:
    """Return an equivalent operand inside [low, high] for the op `what`, or raise OverflowError."""
    if what in _WRAPPING and -2 ** 63 <= value < 2 ** 64:
        return (value - low) % (high - low + 1) + low
    if what not in (("maximum", "clamp_min") if value < low else ("minimum", "clamp_max")):
        raise OverflowError
    return low if value < low else high


def scalar(value: Operand, dtype: dt.dtype, what: str = "scalar") -> Operand:
    """Return a number as an operand of the op `what`: a 0-dim tensor, or a constant of a graph.

    For integer dtypes, fractions are truncated. Large numbers wrap, clamp, or raise DTypeError.
    """
    try:
        if dtype in FLOATS and current_interpreter() is None:
            return engine.number(value, dtype)
        whole = bool if dtype is dt.bool_ else int
        value = (float if dtype.is_floating_point else whole)(value)
        low, high = dtype.limits
        if not (low <= value <= high or dtype.is_floating_point):
            value = _wrap_or_clamp(value, low, high, what)
        if current_interpreter() is None:
            return engine.number(value, dtype)
        return REGISTRY["constant"].call((), ((), value, dtype))
    except (OverflowError, ValueError) as e:
        raise errors.number_overflow(what, dtype.name, value) from e


def cast(x: Operand, dtype: dt.dtype) -> Operand:
    """Return x converted to a dtype, or x itself if it has the dtype."""
    return x if x.dtype is dtype else REGISTRY["cast"].call((x,), (dtype,))


def as_tensors(what: str, a: Operand, b: Operand, dtype: dt.dtype | None = None) -> tuple | None:
    """Return a and b as values of `dtype` or their common dtype; None for unsupported types."""
    one, two = is_value(a), is_value(b)
    if not (one and two):
        if isinstance(a, np.ndarray) and a.ndim or isinstance(b, np.ndarray) and b.ndim:
            if not (isinstance(a, Array) or isinstance(b, Array)):
                return None
            a, b = (engine.array(x) if isinstance(x, np.ndarray) else x for x in (a, b))
            return as_tensors(what, a, b, dtype)
        a, b = (x.item() if isinstance(x, (np.generic, np.ndarray)) else x for x in (a, b))
        if not (one or isinstance(a, (int, float))) or not (two or isinstance(b, (int, float))):
            return None
    if dtype is None:
        dtype = a.dtype if one and two and a.dtype is b.dtype else result_type(a, b)
        dtype = default_float() if what == "div" and not dtype.is_floating_point else dtype
    base_op = "mul" if what == "pow" else what              # the base of pow wraps, as in mul
    return (cast(a, dtype) if one else scalar(a, dtype, base_op),
            cast(b, dtype) if two else scalar(b, dtype, what))


def with_scalars(inputs: tuple) -> tuple:
    """Return the operands; numbers become 0-dim values, promoted with the first value's dtype."""
    like = next((x.dtype for x in inputs if is_value(x)), default_float())
    return tuple([scalar(x, result_type(like, x)) if is_number(x) else x for x in inputs])


engine.operands = with_scalars


# ---- running ops
def run(op: Op, inputs: tuple, attrs: tuple = (), carriers: dict = ELEMENTWISE) -> Operand:
    """Return op(*inputs). If the first input's dtype has a carrier, compute in it and cast back."""
    dtype = inputs[0].dtype
    carrier = carriers.get(dtype.name)
    if carrier is None:
        return op.call(inputs, attrs)
    y = op.call(tuple([cast(x, carrier) for x in inputs]), attrs)
    return REGISTRY["cast"].call((y,), (dtype,)) if y.dtype is carrier else y


_NO_OPERATORS = (str, bytes, type(None), list, tuple, dict, set)


def foreign(what: str, a: object, b: object) -> Operand:
    """Return NotImplemented for an unsupported operand; raise if its class has no operators."""
    for x, side in ((b, "the right operand"), (a, "the left operand")):
        if isinstance(x, _NO_OPERATORS):
            raise NotATensorError(what, x, side)
    return NotImplemented


def operate(op: Op, a: Operand, b: Operand) -> Operand:
    """Return `a op b` for operators such as + - * /, or NotImplemented for unsupported types."""
    kind = type(b)
    if isinstance(a, Array) and (kind is float or kind is int):       # fast path: x * 2
        dtype = a.dtype
        if dtype in FLOATS or (dtype in NUMBERS and kind is int and op is not REGISTRY["div"] and (
                b or op not in DIVIDING)):
            return op.call((a, scalar(b, dtype, op.name)), ())
    elif isinstance(b, Array) and (type(a) is float or type(a) is int) and b.dtype in FLOATS:
        return op.call((scalar(a, b.dtype), b), ())
    pair = as_tensors(op.name, a, b)
    if pair is None:
        return foreign(op.name, a, b)
    a, b = pair
    if not a.dtype.is_floating_point and op in DIVIDING:
        b = engine.nonzero(op.name, b)
    if a.dtype is dt.bool_ and op is REGISTRY["sub"]:
        raise errors.bool_difference()
    return run(op, (a, b))
