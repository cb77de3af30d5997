"""Value checks as records: each returns its first input unchanged, or raises if a value is out of bounds.

A function that takes labels, probabilities, or offsets passes them through `require_range`. The check is then
part of the computation: eager calls, graphs, jobs, global tensors, and GPUs execute it alike, and no pass
removes it while its result is read. On a GPU the error is raised when the program next waits for the device,
like the error of an index out of range.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import flowedu.errors as errors
from flowedu._kernels import register
from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops import axes
from flowedu.core.ops.call import engine
from flowedu.core.ops.define import REGISTRY, define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import bool_
from flowedu.core.values.spec import Spec
from flowedu.ops.types import Spread

register("within")

# The attributes of each check that a GPU was given: it reports the number of one.
CHECKS: list[tuple] = []
_numbers: dict[tuple, int] = {}


def check_number(attrs: tuple) -> int:
    """Return the index of these attributes in CHECKS, to which new ones are appended."""
    if attrs not in _numbers:
        CHECKS.append(attrs)
        _numbers[attrs] = len(CHECKS) - 1
    return _numbers[attrs]


def pack_bounds(tested: Spec, low: float | None, high: float | None,
                nan: bool) -> tuple[tuple[int, int, int], tuple[float, float]]:
    """Return the ints (nan, low, high) and the reals (low, high) of the kernel, for this element type."""
    least, most = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    ints = (0, 0) if tested.dtype.is_floating_point else _whole_bounds(tested.dtype.numpy, least, most)
    return (int(nan), *ints), (least, most)


def _whole_bounds(dtype: np.dtype, low: float, high: float) -> tuple[int, int]:
    """Return the bounds as numbers of an integer dtype.

    If no number of the dtype is inside, return bounds that contain no number.
    """
    info = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    if low > info.max or high < info.min:
        return info.max, info.min
    return int(np.ceil(max(low, info.min))), int(np.floor(min(high, info.max)))


def value_error(bits: int, at: str | None, low: float | None, high: float | None, nan: bool,
                words: tuple) -> errors.FlowError:
    """Return the error of a check. bits: the bits of the value that is out of bounds, as a double."""
    return _error(float(np.int64(bits).view(np.float64)), at, low, high, words)


def _error(value: float, at: str | None, low: float | None, high: float | None,
           words: tuple) -> errors.FlowError:
    words = words or ("within: a value is out of range", "", "", "ArgumentError")
    problem, expected, fix, kind = words
    whole = value.is_integer() and abs(value) < 2 ** 53
    text = str(int(value)) if whole else f"{value:.7g}"
    if low is True:
        text = ""
    bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
    return getattr(errors, kind)(problem.replace("{got}", text), expected=expected or " and ".join(bounds),
                                 got=text, fix=fix, at=at)


def _checked(x: np.ndarray, tested: np.ndarray, low: float | None, high: float | None, nan: bool,
             words: tuple[str, ...]) -> np.ndarray:
    """Return a copy of x: the meaning of both records."""
    bad = np.zeros(tested.shape, bool) if nan else tested != tested
    bad = bad if low is None else bad | (tested < low)
    bad = bad if high is None else bad | (tested > high)
    if bad.any():
        raise _error(float(tested[bad].flat[0]), None, low, high, words)
    return x.copy()


within = define(
    "within(x, *, low=None, high=None, nan=False, words=()) -> y",
    Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim)),
            lambda x, low, high, nan, words: _checked(x, x, low, high, nan, words)),
    Kernel("within", inplace=("x",), numbers=True, range_help=value_error,
           pack=lambda x, low, high, nan: pack_bounds(x, low, high, nan)),
    Laws([dict(shapes=[(6, 12)], low=-2, high=255)], domain={"x": "few"}, float_only=False),
    grad={"x": lambda dy: dy},
    doc="x; an error where a value of it is not in [low, high]. nan: whether NaN counts as inside. words: "
    "problem, expected, fix, and class of the error.")


def _require_axes(x: Spec, tested: Spec) -> str:
    """Of one shape they are split alike; otherwise each device checks all of `tested`."""
    same = axes.same(x.ndim)
    return f"{same},{same if tested.shape == x.shape else axes.LETTERS[::-1][:tested.ndim].upper()}->{same}"


def _apart(x: Spec, tested: Spec, attributes: dict) -> Spread:
    """Signatures in which x and `tested` are split independently: each device checks the part that it has."""
    pairs = {(a, b) for a in ("B", "P", *(f"S{i}" for i in range(x.ndim)))
             for b in ("B", *(f"S{i}" for i in range(tested.ndim)))}
    derived = {("B", "B"), ("P", "B")}
    alike = tested.shape == x.shape
    derived |= {(f"S{i}", f"S{i}" if alike else "B") for i in range(x.ndim)}
    return {(a, b, a): (require, lambda start, stop: attributes) for a, b in sorted(pairs - derived)}


require = define(
    "require(x, tested, *, low=None, high=None, nan=False, words=()) -> y",
    Meaning(_require_axes, _checked),
    Kernel("within", key="tested", inplace=("x",), numbers=True, range_help=value_error, pack=pack_bounds),
    Split(linear=["x"], spread=_apart),
    Laws([dict(shapes=[(6, 12), (12,)], low=-2, high=255), dict(shapes=[(6, 12), (6, 12)], low=-2, high=255)],
         domain={"tested": "few"}, float_only=False),
    grad={"x": lambda dy: dy, "tested": lambda dy: None},
    doc="x; an error where a value of `tested` is not in [low, high]. nan: whether NaN counts as inside.")


def require_range(x: Any, low: float | None = None, high: float | None = None, *, problem: str,
                  tested: Any = None,
                  nan: bool = False, expected: str = "", fix: str = "",
                  error: type = errors.ArgumentError) -> Any:
    """Return x, with a check that all values of `tested` (default: of x) are in [low, high].

    Args:
        low, high: bounds; None: no bound on that side. low=True: `tested` is a condition that must hold.
        problem, expected, fix: texts of the error. The value out of bounds replaces {got} in `problem`.
        nan: True if NaN is accepted.
        error: a class of flowedu.errors.
    """
    attrs = low, high, nan, (problem, expected, fix, error.__name__)
    op, inputs = (within, (x,)) if tested is None else (require, (x, tested))
    return op.call(inputs, attrs) if isinstance(x, TensorBase) else op(*inputs, **dict(zip(op.attrs, attrs)))


def nonzero(name: str, divisor: Any) -> Any:
    """Return an integer divisor, with a check that no element is 0.

    Unlike floats, integers have no infinity as the result of a division by zero.
    """
    if not divisor.ndim and not getattr(divisor, "is_lazy", True):         # a Python number, most often
        tested = None if divisor.peek().all() else divisor
    else:
        tested = divisor if divisor.dtype is bool_ else REGISTRY["not_equal"](divisor, 0)
    return divisor if tested is None else require_range(
        divisor, True, tested=tested, problem=f"{name}: ZeroDivisionError: whole numbers are divided by 0",
        expected="divisors other than 0", fix="divide floats, or use flow.where first",
        error=errors.KernelError)


engine.nonzero = nonzero
