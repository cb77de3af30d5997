"""Optimizer updates: ops that change their inputs and have no output. What one is, and SGD; others: ops/update_*.py.

One call updates every parameter of a model. The inputs are `lr` (one float), `step` (one int64: updates made so far),
then for each parameter its group: the weight w, its gradient g, and what the rule remembers about it, such as
(w, g, m, v). Attributes that differ between parameters are tuples with one number each; a tuple of one number holds for all
parameters, an empty one stands for zeros. Before the rule is applied, g becomes `scale * g + l1 * sign(w) + l2 * w`.

A step below 0 changes nothing: a training that looks for overflow passes it where it found one.

PyTorch's weight decay is `l2` here, AdamW's is `weight_decay`; maximize=True is scale=-1.

`op.mutates(n)` tells the graph which of n inputs are changed, in order; `ref` returns their new values in that order.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flowedu._kernels import NARROW, register
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.record import Effects, Kernel, Meaning, Split
from flowedu.core.values.dtype import float32, float64, int64
from flowedu.errors import ArgumentError, DTypeError, ShapeError

register("update")

HEAD = 2                                          # inputs before the groups: lr, step


def _update_axes(xs, group, whole):
    """Each group has letters of its own. Lower case: a device may update just its part of a parameter. Rules that need
    the norm of the whole parameter have upper case.

    Models have more axes than the alphabet has letters, so the letters of all scripts serve; behind them no axis is split.
    """
    letters = (chr(c) for c in range(0x61, 0x20000) if (chr(c).isupper() if whole else chr(c).islower()))
    terms = ["A", "B"]
    for i in range(HEAD, len(xs), len(group)):
        own = "".join(next(letters, "1") for _ in xs[i].shape)
        terms += ["1" if _is_number(n) else own for n in group]
    return ",".join(terms) + "->"


def _is_number(name):
    """Whether this member of a group is one number per parameter, however large the parameter is."""
    return name.endswith("_t")


def _check(name, group, xs, per_parameter):
    size = len(group)
    if len(xs) < HEAD or (len(xs) - HEAD) % size:
        raise ArgumentError(f"{name}: wrong number of inputs", got=str(len(xs)),
                            expected=f"lr, step, then ({', '.join(group)}) for each parameter",
                            fix=f"pass {size} values per parameter")
    if xs[0].size != 1 or xs[0].dtype not in (float32, float64) or xs[1].size != 1 or xs[1].dtype is not int64:
        raise DTypeError(f"{name}: lr and step do not fit", expected="one float, one int64", got=f"{xs[0]}, {xs[1]}",
                         fix="pass lr as float32[1] and step as int64[1]")
    for i in range(HEAD, len(xs), size):
        if xs[i].dtype not in (float32, float64) and xs[i].dtype.code not in NARROW:
            raise DTypeError(f"{name}: no kernel for this element type", expected="a floating type",
                             got=xs[i].dtype.name, fix="keep parameters in float32")
        for member, other in zip(group, xs[i:i + size]):
            shape = (1,) if _is_number(member) else xs[i].shape
            if other.shape != shape or other.dtype is not xs[i].dtype:
                raise ShapeError(f"{name}: {member} of parameter {(i - HEAD) // size} does not fit its weight",
                                 expected=f"{xs[i].dtype.name}{list(shape)}", got=str(other),
                                 fix="give all arrays of a group one shape and dtype"
                                     + ", and one number to names with _t" * any(map(_is_number, group)))
    for attr, values in per_parameter.items():
        if len(values) not in (0, 1, (len(xs) - HEAD) // size):
            raise ArgumentError(f"{name}: {attr} does not fit", expected=f"{(len(xs) - HEAD) // size} numbers, one or none",
                                got=str(len(values)), fix="give one number per parameter, or one for all")


def number_of(values, i):
    """What a per-parameter attribute says about parameter i."""
    return 0.0 if not values else values[0] if len(values) == 1 else values[i]


def _numbers(n, *per_parameter):
    """[(weight decay, l1, l2) of each of n parameters]"""
    return [tuple(number_of(v, i) for v in per_parameter) for i in range(n)]


def define_update(name: str, group: Sequence[str], rule: Callable, hyper: Mapping[str, float | bool] | None = None,
                  numbers: str = "", whole: bool = False) -> Op:
    """One record. rule(w, g, state, lr, wd, t, **hyper) -> new values of the changed arrays, in NumPy.

    group: names of what belongs to a parameter; those that end in _t are single numbers. hyper: more attributes, numbers
    and booleans, with their defaults; numbers: which of them the kernel gets as its three, in that order ("-": none).
    whole: a parameter must not be split over devices.
    """
    hyper, size = hyper or {}, len(group)
    common = {"scale": 1.0, "weight_decay": (), "l1": (), "l2": ()}
    flags = [n for n, default in hyper.items() if isinstance(default, bool)]
    three = (*numbers.split(), "-", "-", "-")[:3]

    def pack(xs, scale, weight_decay, l1, l2, attributes):
        own = _numbers((len(xs) - HEAD) // size, weight_decay, l1, l2)
        reals = [0.0 if n == "-" else attributes[n] for n in three]
        return tuple(int(attributes[n]) for n in flags) or (0,), (scale, *reals, *[x for decays in own for x in decays])

    def ref(xs, scale, weight_decay, l1, l2, attributes):
        more = {n: attributes[n] for n in hyper}
        lr, t, out = float(np.ravel(xs[0])[0]), int(np.ravel(xs[1])[0]) + 1, []
        for i, (wd, a, b) in enumerate(_numbers((len(xs) - HEAD) // size, weight_decay, l1, l2)):
            w, g, *state = xs[HEAD + i * size:HEAD + (i + 1) * size]
            if t <= 0:                                # no such step
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
def _sgd(w, g, state, lr, wd, t):
    return (w - lr * (g + wd * w),)


sgd_update = define_update("sgd_update", "wg", _sgd)
