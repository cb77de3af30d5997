"""Ops that limit values to bounds, or replace the values inside them.

The bounds are inputs, 0-dim or broadcast. At a bound, clamp_min and clamp_max pass the gradient to x, whereas
maximum and minimum split it. The other ops have slope 0 at a bound. Their gradient is a separate record that
is constant in x, so that a second derivative is 0 instead of an error.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import is_grad_enabled
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.elementwise import (
    abs,
    greater_equal,
    less_equal,
    maximum,
    minimum,
    neg,
    sign,
    where,
    where_false,
    where_true,
    zeros_of,
)
from flowedu.core.ops.record import Laws, Split
from flowedu.ops.formula import elementwise
from flowedu.ops.types import AnyTensor

clamp_min = elementwise("clamp_min(x, low) -> z", Split(fold="max", rising=["x", "low"]),
                        Laws(float_only=False), tile="maximum", ref=lambda x, low: np.maximum(x, low),
                        grad={"x": lambda dz, x, low: where_true(greater_equal(x, low), dz),
                              "low": lambda dz, x, low: where_false(greater_equal(x, low), dz)})
clamp_max = elementwise("clamp_max(x, high) -> z", Split(fold="min", rising=["x", "high"]),
                        Laws(float_only=False), tile="minimum", ref=lambda x, high: np.minimum(x, high),
                        grad={"x": lambda dz, x, high: where_true(less_equal(x, high), dz),
                              "high": lambda dz, x, high: where_false(less_equal(x, high), dz)})

threshold_grad = elementwise("threshold_grad(dy, x, limit) -> dx", Split(linear=["dy"]),
                             formula=lambda dy, x, limit: where(less_equal(x, limit), 0, dy),
                             grad={"dy": lambda ddx, x, limit: threshold_grad(ddx, x, limit),
                                   "x": lambda ddx: None,
                                   "limit": lambda ddx: None}, doc="dy; 0 where x is not above the limit.")


def flat_in(dx: AnyTensor, x: Any) -> AnyTensor:
    """Return dx as a value that depends on x with slope 0.

    The derivative of dx with respect to x is then 0 instead of an error. No value is below the limit NaN, so
    dx is only copied. The copy is made only if the gradient of a gradient is recorded.
    """
    recorded = current_interpreter() is None and is_grad_enabled() and x.requires_grad
    return threshold_grad(dx, x, math.nan) if recorded else dx


def straight(x: AnyTensor) -> AnyTensor:
    """Return x, with a gradient that has derivatives; see flat_in."""
    return threshold(x, math.nan, 0.0) if x.dtype.is_floating_point else x


threshold = elementwise("threshold(x, limit, value) -> y",
                        formula=lambda x, limit, value: where(less_equal(x, limit), value, x),
                        grad={"x": lambda dy, x, limit: threshold_grad(dy, x, limit),
                              "limit": lambda dy: zeros_of(dy),
                              "value": lambda dy, x, limit: where_true(less_equal(x, limit), dy)},
                        doc="x where it is above the limit, the value elsewhere.")
hardtanh = elementwise("hardtanh(x, low, high) -> y", Split(rising=["x", "low", "high"]),
                       Laws(domain={"low": "unit", "high": "above_one"}),
                       formula=lambda x, low, high: minimum(maximum(x, low), high),
                       grad={"x": lambda dy, x, low, high: threshold_grad(threshold_grad(dy, x, low), neg(x),
                                                                          neg(high)),
                             "low": lambda dy, x, low: where_true(less_equal(x, low), dy),
                             "high": lambda dy, x, high: where_true(greater_equal(x, high), dy)},
                       doc="x kept inside [low, high].")
hardshrink = elementwise("hardshrink(x, lambd) -> y", Laws(domain={"lambd": "positive"}),
                         formula=lambda x, lambd: where(less_equal(abs(x), lambd), 0, x),
                         grad={"x": lambda dy, x, lambd: threshold_grad(dy, abs(x), lambd),
                               "lambd": lambda dy: zeros_of(dy)},
                         doc="x; 0 where |x| is not above lambd.")
softshrink = elementwise("softshrink(x, lambd) -> y", Laws(domain={"lambd": "positive"}), Split(rising=["x"]),
                         formula=lambda x, lambd: x - minimum(maximum(x, neg(lambd)), lambd),
                         grad={"x": lambda dy, x, lambd: threshold_grad(dy, abs(x), lambd),
                               "lambd": lambda dy, x, lambd: neg(threshold_grad(dy, abs(x),
                                                                                lambd) * sign(x))},
                         doc="x moved towards 0 by lambd; 0 where it would pass it.")
