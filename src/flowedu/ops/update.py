"""Optimizer updates: ops that change their inputs and have no output.

One call updates every parameter of a model. The inputs are `lr` (one float), `step` (one int64: updates made so far),
then for each parameter its group: the weight w, its gradient g, and what the rule remembers about it, such as
(w, g, m, v). Attributes that differ between parameters are tuples with one number each; a tuple of one number holds for all
parameters, an empty one stands for zeros. Before the rule is applied, g becomes `scale * g + l1 * sign(w) + l2 * w`.

A step below 0 changes nothing: a training that looks for overflow passes it where it found one.

`op.mutates(n)` tells the graph which of n inputs are changed, in order; `ref` returns their new values in that order.
"""
from __future__ import annotations

import numpy as np

from flowedu.blob.dtype import float32, float64, int64
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.define import define

HEAD = 2                                          # inputs before the groups: lr, step


def _update_axes(xs, group, whole):
    """Each group has letters of its own. Lower case: a device may update just its part of a parameter. Rules that need
    the norm of the whole parameter have upper case.

    Models have more axes than the alphabet has letters, so the letters of all scripts serve.
    """
    letters = (chr(c) for c in range(0x61, 0x20000) if (chr(c).isupper() if whole else chr(c).islower()))
    terms = ["A", "B"]
    for i in range(HEAD, len(xs), len(group)):
        own = "".join(next(letters) for _ in xs[i].shape)
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
        if xs[i].dtype not in (float32, float64):
            raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
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


def define_update(name, group, rule, hyper="", reals=lambda: (0.0, 0.0, 0.0), flags="", whole=False):
    """One record. rule(w, g, state, lr, wd, t, **hyper) -> new values of the changed arrays, in NumPy.

    group: names of what belongs to a parameter; those that end in _t are single numbers. hyper, flags: more attributes,
    numbers and booleans, with their defaults; reals(**numbers) -> the three the kernel gets. whole: a parameter must not
    be split over devices.
    """
    size = len(group)
    head = f"{name}(*xs, scale=1.0, weight_decay=(), l1=(), l2=(){hyper}{flags}) -> ()"
    booleans = _attributes(flags)

    def pack(xs, scale, weight_decay, l1, l2, **more):
        own = _numbers((len(xs) - HEAD) // size, weight_decay, l1, l2)
        ints = tuple(int(more.pop(b)) for b in booleans) or (0,)
        return ints, (scale, *reals(**more), *[x for numbers in own for x in numbers])

    def ref(xs, scale, weight_decay, l1, l2, **more):
        lr, t, out = float(np.ravel(xs[0])[0]), int(np.ravel(xs[1])[0]) + 1, []
        for i, (wd, a, b) in enumerate(_numbers((len(xs) - HEAD) // size, weight_decay, l1, l2)):
            w, g, *state = xs[HEAD + i * size:HEAD + (i + 1) * size]
            if t <= 0:                                # no such step
                out += [w, *state]
                continue
            g = scale * g + a * np.sign(w) + b * w
            out += [np.asarray(x, w.dtype) for x in rule(w, g, state, lr, wd, t, **more)]
        return tuple(out)

    names = _attributes(hyper + flags)
    common = ["xs", "scale", "weight_decay", "l1", "l2"]
    op = define(head, lambda xs: _update_axes(xs, group, whole), shape=lambda: (), contiguous=False, cpu=name,
                ref=_asks(ref, common + names), pack=_asks(pack, common + names),
                check=lambda xs, weight_decay, l1, l2: _check(name, group, xs, {
                    "weight_decay": weight_decay, "l1": l1, "l2": l2}),
                doc=f"lr, step, then ({', '.join(group)}) for each parameter; all but g change in place.")
    op.group = size
    op.whole = whole
    op.mutates = lambda n: [i for i in range(HEAD, n) if (i - HEAD) % size != 1]
    return op


def _attributes(declared):
    return [p.split("=")[0].strip() for p in declared.split(",") if p.strip()]


def _asks(f, names):
    """f as a function whose signature lists `names`: records read signatures (ops/define.py)."""
    from inspect import Parameter, Signature
    g = lambda *values: f(**dict(zip(names, values)))
    g.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])
    return g


def norm(a):
    return float(np.sqrt(np.sum(np.square(a, dtype=np.float64))))


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


def _rmsprop(w, g, state, lr, wd, t, decay_rate, epsilon):
    ms = decay_rate * state[0] + (1 - decay_rate) * g * g
    return w - lr * (g / np.sqrt(ms + epsilon) + wd * w), ms


def _rmsprop_centered(w, g, state, lr, wd, t, decay_rate, epsilon):
    ms = decay_rate * state[0] + (1 - decay_rate) * g * g
    mg = decay_rate * state[1] + (1 - decay_rate) * g
    variance = np.maximum(ms - mg * mg, 0)        # rounding may take it below 0
    return w - lr * (g / np.sqrt(variance + epsilon) + wd * w), ms, mg


def _lars(w, g, state, lr, wd, t, momentum_beta, epsilon, lars_coefficient):
    a, b = norm(w), norm(g)
    if a > 0 and b > 0:
        lr = lr * lars_coefficient * a / (epsilon + b + wd * a)
    return _momentum(w, g, state, lr, wd, t, momentum_beta)


def _lamb(w, g, state, lr, wd, t, beta1, beta2, epsilon):
    m, v, beta1_t, beta2_t = state                # the last two: beta1 and beta2 to the power of the step's number, from 1
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    a = m / (1 - float(beta1_t[0])) / (np.sqrt(v / (1 - float(beta2_t[0]))) + epsilon)
    p, q = norm(w), norm(a)
    if p > 0 and q > 0:
        lr = lr * p / q
    return w - lr * (a + wd * w), m, v, beta1_t * beta1, beta2_t * beta2


def _betas(beta1, beta2, epsilon):
    return beta1, beta2, epsilon


sgd_update = define_update("sgd_update", "wg", _sgd)
momentum_update = define_update("momentum_update", "wgm", _momentum, ", beta=0.9", lambda beta: (beta, 0.0, 0.0))
adam_update = define_update("adam_update", "wgmv", _adam, ", beta1=0.9, beta2=0.999, epsilon=1e-8", _betas,
                            ", do_bias_correction=False")
rmsprop_update = define_update("rmsprop_update", ("w", "g", "mean_square"), _rmsprop,
                               ", decay_rate=0.99, epsilon=1e-8", lambda decay_rate, epsilon: (decay_rate, 0.0, epsilon))
rmsprop_centered_update = define_update("rmsprop_centered_update", ("w", "g", "mean_square", "mean_gradient"),
                                        _rmsprop_centered, ", decay_rate=0.99, epsilon=1e-8",
                                        lambda decay_rate, epsilon: (decay_rate, 0.0, epsilon))
lars_update = define_update("lars_update", "wgm", _lars, ", momentum_beta=0.9, epsilon=1e-9, lars_coefficient=0.0001",
                            lambda momentum_beta, epsilon, lars_coefficient: (momentum_beta, lars_coefficient, epsilon),
                            whole=True)
lamb_update = define_update("lamb_update", ("w", "g", "m", "v", "beta1_t", "beta2_t"), _lamb,
                            ", beta1=0.9, beta2=0.999, epsilon=1e-6", _betas, whole=True)
