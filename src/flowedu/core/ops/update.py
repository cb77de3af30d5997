"""Optimizer updates, which are ops that change their inputs, and SGD (others: ops/update_*.py).

One call updates all parameters of a model. The inputs are `lr` (one float), `step` (one int64, the
number of previous updates), then a group for each parameter. A group has the weight w, its gradient
g, and the state of the rule, such as (w, g, m, v). A per-parameter attribute is a tuple: one number
per parameter, one for all, or none (zeros). First, g becomes `scale * g + l1 * sign(w) + l2 * w`.

A call with step < 0 changes nothing. Loss scaling uses such a call after an overflow.

`l2` is PyTorch's weight decay, `weight_decay` is AdamW's, and scale=-1 is maximize=True.

`op.mutates(n)` returns which of the n inputs change, as indices in the order of `ref`'s results.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu._kernels import NARROW, register
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.record import Effects, Kernel, Meaning, Split
from flowedu.core.values.dtype import float32, float64, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ops as errors

register("update")

HEAD = 2                                          # inputs before the groups: lr, step


def _update_axes(xs: Sequence[Spec], group: Sequence[str], whole: bool) -> str:
    """Return the equation. Each group has its own Unicode letters, in upper case if `whole`.

    `whole` is set for rules that need the norm of the whole parameter. After 1000 letters, groups
    share letters: axes with the same index and size have the same letter and are split together.
    """
    letters = (chr(c) for c in range(0x61, 0x20000)
               if (chr(c).isupper() if whole else chr(c).islower()))
    terms, letter_of = ["A", "B"], dict[tuple, str]()
    for i in range(HEAD, len(xs), len(group)):
        keys = [(i if len(letter_of) < 1000 else 0, *axis) for axis in enumerate(xs[i].shape)]
        term = "".join(letter_of.get(k) or letter_of.setdefault(k, next(letters)) for k in keys)
        terms += ["1" if n.endswith("_t") else term for n in group]      # _t: a single number
    return ",".join(terms) + "->"


def _check(name: str, group: Sequence[str], xs: Sequence[Spec],
           per_parameter: dict[str, Sequence[float]]) -> None:
    size = len(group)
    if len(xs) < HEAD or (len(xs) - HEAD) % size:
        raise errors.update_inputs(name, xs, group, size)
    floats = (float32, float64)
    if xs[0].size != 1 or xs[1].size != 1 or xs[0].dtype not in floats or xs[1].dtype is not int64:
        raise errors.lr_and_step(name, xs)
    for i in range(HEAD, len(xs), size):
        if xs[i].dtype not in floats and xs[i].dtype.code not in NARROW:
            raise errors.update_dtype(name, xs, i)
        for member, other in zip(group, xs[i:i + size]):
            shape = (1,) if member.endswith("_t") else xs[i].shape
            if other.shape != shape or other.dtype is not xs[i].dtype:
                number = (i - HEAD) // size
                raise errors.update_misfit(name, member, number, xs[i].dtype, shape, other, group)
    for attr, values in per_parameter.items():
        if len(values) not in (0, 1, (len(xs) - HEAD) // size):
            raise errors.update_attribute(name, attr, (len(xs) - HEAD) // size, values)


def number_of(values: Sequence[float], i: int) -> float:
    """Return the value of a per-parameter attribute for parameter i."""
    return (values or (0.0,))[i if len(values) > 1 else 0]


def _decays(n: int, *per_parameter: Sequence[float]) -> list[tuple[float, ...]]:
    """Return (weight decay, l1, l2) of each of n parameters."""
    return [tuple(number_of(v, i) for v in per_parameter) for i in range(n)]


def define_update(name: str, group: Sequence[str], rule: Callable,
                  hyper: Mapping[str, float | bool] | None = None, numbers: str = "",
                  whole: bool = False) -> Op:
    """Define an update op. rule(w, g, state, lr, wd, t, **hyper) returns the new arrays, in NumPy.

    group: names of a parameter's arrays; names that end in _t are single numbers. hyper: {name:
    default} of more attributes, numbers and booleans. numbers: names of up to three of these, in
    the order of the kernel ("-": none). whole: True if a parameter must not be split over devices.
    """
    hyper, size = hyper or {}, len(group)
    common = {"scale": 1.0, "weight_decay": (), "l1": (), "l2": ()}
    flags = [n for n, default in hyper.items() if isinstance(default, bool)]
    kernel_numbers = (*numbers.split(), "-", "-", "-")[:3]

    def pack(xs: tuple[Spec, ...], scale: float, weight_decay: Sequence[float], l1: Sequence[float],
             l2: Sequence[float], attributes: dict[str, Any]) -> tuple:
        decays = [x for d in _decays((len(xs) - HEAD) // size, weight_decay, l1, l2) for x in d]
        reals = [0.0 if n == "-" else attributes[n] for n in kernel_numbers]
        return tuple(int(attributes[n]) for n in flags) or (0,), (scale, *reals, *decays)

    def ref(xs: tuple[np.ndarray, ...], scale: float, weight_decay: Sequence[float],
            l1: Sequence[float], l2: Sequence[float], attributes: dict[str, Any]) -> tuple:
        more = {n: attributes[n] for n in hyper}
        lr, t, out = float(np.ravel(xs[0])[0]), int(np.ravel(xs[1])[0]) + 1, []
        for i, (wd, a, b) in enumerate(_decays((len(xs) - HEAD) // size, weight_decay, l1, l2)):
            w, g, *state = xs[HEAD + i * size:HEAD + (i + 1) * size]
            if t <= 0:                                # skipped
                out += [w, *state]
                continue
            g = scale * g + a * np.sign(w) + b * w
            out += [np.asarray(x, w.dtype) for x in rule(w, g, state, lr, wd, t, **more)]
        return tuple(out)

    listed = ", ".join(f"{n}={default!r}" for n, default in {**common, **hyper}.items())
    return define(
        f"{name}(*xs, {listed}) -> ()",
        Meaning(lambda xs: _update_axes(xs, group, whole), ref, shape=lambda: (),
                check=lambda xs, weight_decay, l1, l2: _check(name, group, xs, {
                    "weight_decay": weight_decay, "l1": l1, "l2": l2})),
        Kernel(name, pack=pack, contiguous=False), Split(group=size, whole=whole),
        Effects(mutates=lambda n: [i for i in range(HEAD, n) if (i - HEAD) % size != 1]),
        doc=f"lr, step, then ({', '.join(group)}) for each parameter; all but g change in place.")


# ---- stochastic gradient descent
def _sgd(w: np.ndarray, g: np.ndarray, state: list, lr: float, wd: float, t: int) -> tuple:
    return (w - lr * (g + wd * w),)


sgd_update = define_update("sgd_update", "wg", _sgd)
