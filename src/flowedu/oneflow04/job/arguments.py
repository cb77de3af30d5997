"""Checks of the arguments of a job call: containers of arrays, and lists per device."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowedu.core.values import placeholder as ph
from flowedu.core.values.placeholder import FixedTensorDef
from flowedu.errors import CheckError, DTypeError, format_value
from flowedu.oneflow04.mirrored import MirroredTensorDef, MirroredTensorListDef, advise_conversion


def check_arguments(name: str, parameters: tuple[str, ...], defs: tuple, args: tuple,
                    devices: int = 1) -> list:
    """Check all arguments of one call of job `name`: their number, and each with `check_argument`."""
    try:
        return ph.check_arguments(name, parameters, defs, args,
                                  lambda d, a, where: check_argument(d, a, where, devices))
    except CheckError as e:
        if len(args) == len(defs) and (swapped := _advise_order(parameters, defs, args, devices)):
            raise CheckError(e.problem, expected=e.expected, got=e.got, fix=swapped, at=e.at) from None
        raise


def check_argument(defn: Any, value: Any, where: str, devices: int = 1) -> Any:
    """Return `value` converted to the definition, or raise an error with advice.

    Args:
        defn: a definition, or a tuple, list, or dict of definitions, nested to any depth.
        value: the argument of the call.
        where: the start of the error message, such as "train_job: argument 1 (images)".
        devices: the number of arrays of a ListNumpy.

    Returns: the array, cast to the dtype of the definition. An array that fits is returned without a copy.
    Mirrored definitions return lists (of lists) of arrays, and containers return the containers of `defn`.

    Raises:
        CheckError: the value does not fit. The error is an AssertionError.
        DTypeError: an array is not numeric.
    """
    if isinstance(defn, FixedTensorDef):
        return _check_fixed(defn, value, where)
    if isinstance(defn, (MirroredTensorDef, MirroredTensorListDef)):
        return defn.check(value, where, devices)
    if isinstance(defn, dict):
        if not isinstance(value, dict) or value.keys() != defn.keys():
            raise CheckError(f"{where}: the dict does not fit", expected=f"a dict with keys {sorted(defn)}",
                             got=f"keys {sorted(value, key=str)}" if isinstance(value, dict)
                             else format_value(value), fix="pass a dict with these keys")
        return {k: check_argument(d, value[k], f"{where}[{k!r}]", devices) for k, d in defn.items()}
    if not isinstance(value, (list, tuple)) or len(value) != len(defn):
        raise CheckError(f"{where}: a tuple that does not fit", expected=f"a tuple of {len(defn)}",
                         got=format_value(value),
                         fix=f"pass ({', '.join('abcdefgh'[:len(defn)])},) as one argument")
    return type(defn)(check_argument(d, v, f"{where}[{i}]", devices)
                      for i, (d, v) in enumerate(zip(defn, value)))


def _check_fixed(defn: FixedTensorDef, value: Any, where: str) -> np.ndarray:
    try:
        return defn.check(value, where)
    except CheckError as e:
        fix = (advise_shape(defn.shape, value.shape) if isinstance(value, np.ndarray)
               else advise_conversion(value))
        raise CheckError(e.problem, expected=e.expected, got=e.got, fix=fix, at=e.at) from None


def advise_shape(want: tuple, got: tuple) -> str:
    """Return advice for the most likely cause of a wrong shape."""
    if len(want) == len(got) and want[1:] == got[1:]:
        if got[0] < want[0]:
            return (f"a last, smaller batch? Drop it, or fill it up to {want[0]} rows: the shape must "
                    f"be exact (tp.ListNumpy takes batches that vary)")
        return f"feed {want[0]} rows at a time: x[i:i + {want[0]}]"
    if got == want[1:]:
        return ("the batch axis is missing: x[None]" if want[0] == 1
                else f"one sample? Stack {want[0]}: np.stack([...])")
    if len(want) == len(got) and sorted(want) == sorted(got):
        left, perm = list(enumerate(got)), []
        for n in want:
            perm.append(next(i for i, m in left if m == n))
            left.remove((perm[-1], n))
        return f"the axes are in another order: x.transpose{tuple(perm)}"
    if prod(want) == prod(got):
        return f"x.reshape{want}"
    return f"feed {want}, or declare Placeholder({got})"


def _advise_order(parameters: tuple, defs: tuple, args: tuple, devices: int) -> str:
    """Return advice if exchanging two arguments would make both fit, else ""."""
    def fits(d, a):
        try:
            check_argument(d, a, "", devices)
        except (CheckError, DTypeError):
            return False
        return True

    bad = [i for i, (d, a) in enumerate(zip(defs, args)) if not fits(d, a)]
    if len(bad) == 2 and fits(defs[bad[0]], args[bad[1]]) and fits(defs[bad[1]], args[bad[0]]):
        return (f"{parameters[bad[0]]} and {parameters[bad[1]]} look swapped: the order is "
                f"({', '.join(parameters)})")
    return ""
