"""Optimizer updates: ops that change their inputs and have no output.

One call updates every parameter of a model. The inputs are `lr` (one float), `step` (one int64: updates made so far),
then for each parameter its group: (w, g), (w, g, m) or (w, g, m, v). Attributes that differ between parameters are
tuples with one number each; an empty tuple stands for zeros. Before the rule is applied, g becomes
`scale * g + l1 * sign(w) + l2 * w`.

`op.mutates(n)` tells the graph which of n inputs are changed, in order; `ref` returns their new values in that order.
"""
from __future__ import annotations

import numpy as np

from flowedu.blob.dtype import float32, float64, int64
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.define import define


def _update_axes(xs, size):
    """Each group has letters of its own, all lower case: a device may update just its part of a parameter.

    Models have more axes than the alphabet has letters, so the lower-case letters of all scripts serve.
    """
    letters = (chr(c) for c in range(0x61, 0x20000) if chr(c).islower())
    terms = ["A", "B"]
    for i in range(2, len(xs), size):
        terms += ["".join(next(letters) for _ in xs[i].shape)] * size
    return ",".join(terms) + "->"


def _check(name, group, xs, per_parameter):
    size = len(group)
    if len(xs) < 2 or (len(xs) - 2) % size:
        raise ArgumentError(f"{name}: wrong number of inputs", got=str(len(xs)),
                            expected=f"lr, step, then ({', '.join(group)}) for each parameter")
    if xs[0].size != 1 or xs[0].dtype not in (float32, float64) or xs[1].size != 1 or xs[1].dtype is not int64:
        raise DTypeError(f"{name}: lr and step do not fit", expected="one float, one int64", got=f"{xs[0]}, {xs[1]}")
    for i in range(2, len(xs), size):
        if xs[i].dtype not in (float32, float64):
            raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
                             got=xs[i].dtype.name)
        for j, other in enumerate(xs[i:i + size]):
            if other != xs[i]:
                raise ShapeError(f"{name}: {group[j]} of parameter {(i - 2) // size} differs from its weight",
                                 expected=str(xs[i]), got=str(other),
                                 fix="give all arrays of a group one shape and dtype")
    for attr, values in per_parameter.items():
        if len(values) not in (0, (len(xs) - 2) // size):
            raise ArgumentError(f"{name}: {attr} does not fit", expected=f"{(len(xs) - 2) // size} numbers, or none",
                                got=str(len(values)))


def _numbers(n, *per_parameter):
    """[(weight decay, l1, l2) of each of n parameters]"""
    return list(zip(*[v if v else (0.0,) * n for v in per_parameter]))


def _define(name, group, rule, hyper="", reals=lambda: (0.0, 0.0, 0.0), correct=""):
    """One record. rule(w, g, state, lr, wd, t, **hyper) -> new values of the changed arrays, in NumPy."""
    size = len(group)
    head = f"{name}(*xs, scale=1.0, weight_decay=(), l1=(), l2=(){hyper}{correct}) -> ()"

    def pack(xs, scale, weight_decay, l1, l2, **more):
        own = _numbers((len(xs) - 2) // size, weight_decay, l1, l2)
        correction = more.pop("do_bias_correction", False)
        return (int(correction),), (scale, *reals(**more), *[x for numbers in own for x in numbers])

    def ref(xs, scale, weight_decay, l1, l2, **more):
        lr, t, out = float(np.ravel(xs[0])[0]), int(np.ravel(xs[1])[0]) + 1, []
        for i, (wd, a, b) in enumerate(_numbers((len(xs) - 2) // size, weight_decay, l1, l2)):
            w, g, *state = xs[2 + i * size:2 + (i + 1) * size]
            g = scale * g + a * np.sign(w) + b * w
            out += [np.asarray(x, w.dtype) for x in rule(w, g, state, lr, wd, t, **more)]
        return tuple(out)

    names = [p.split("=")[0].strip() for p in (hyper + correct).split(",") if p.strip()]
    common = ["xs", "scale", "weight_decay", "l1", "l2"]
    op = define(head, lambda xs: _update_axes(xs, size), shape=lambda: (), contiguous=False, cpu=name,
                ref=_asks(ref, common + names), pack=_asks(pack, common + names),
                check=lambda xs, weight_decay, l1, l2: _check(name, group, xs, {
                    "weight_decay": weight_decay, "l1": l1, "l2": l2}),
                doc=f"lr, step, then ({', '.join(group)}) for each parameter; all but g change in place.")
    op.mutates = lambda n: [i for i in range(2, n) if (i - 2) % size != 1]
    return op


def _asks(f, names):
    """f as a function whose signature lists `names`: records read signatures (ops/define.py)."""
    from inspect import Parameter, Signature
    g = lambda *values: f(**dict(zip(names, values)))
    g.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])
    return g


def _sgd(w, g, state, lr, wd, t):
    return (w - lr * (g + wd * w),)


def _momentum(w, g, state, lr, wd, t, beta):
    m = beta * state[0] - lr * g                  # OneFlow keeps the learning rate inside m
    return w + m - lr * wd * w, m


def _adam(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m = beta1 * state[0] + (1 - beta1) * g
    v = beta2 * state[1] + (1 - beta2) * g * g
    if do_bias_correction:
        lr = lr * np.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    return w - lr * (m / (np.sqrt(v) + epsilon) + wd * w), m, v


sgd_update = _define("sgd_update", "wg", _sgd)
momentum_update = _define("momentum_update", "wgm", _momentum, ", beta=0.9", lambda beta: (beta, 0.0, 0.0))
adam_update = _define("adam_update", "wgmv", _adam, ", beta1=0.9, beta2=0.999, epsilon=1e-8",
                      lambda beta1, beta2, epsilon: (beta1, beta2, epsilon), ", do_bias_correction=False")
