"""Activations with parameters, such as a slope.

The parameters are inputs (0-dim or broadcast), so one record and one kernel serve all their values.
"""
from __future__ import annotations

from flowedu.core.ops.elementwise import exp, expm1, greater, minimum, where, where_false
from flowedu.core.ops.record import Laws, Split
from flowedu.ops.formula import elementwise
from flowedu.ops.types import AnyTensor

leaky_relu = elementwise("leaky_relu(x, slope) -> y",
                         formula=lambda x, slope: where(greater(x, 0.0), x, x * slope),
                         grad={"x": lambda dy, x, slope: leaky_relu_grad(dy, x, slope),
                               "slope": lambda dy, x: where_false(greater(x, 0.0), dy * x)},
                         doc="x where x > 0, slope * x elsewhere.")
leaky_relu_grad = elementwise("leaky_relu_grad(dy, x, slope) -> dx", Split(linear=["dy"]),
                              formula=lambda dy, x, slope: where(greater(x, 0.0), dy, dy * slope),
                              grad={"dy": lambda ddx, x, slope: leaky_relu_grad(ddx, x, slope),
                                    "x": lambda ddx: None,
                                    "slope": lambda ddx, dy, x: where_false(greater(x, 0.0), ddx * dy)},
                              doc="dy, times the slope where x is not above 0.")


def _below(x: AnyTensor, rate: AnyTensor) -> AnyTensor:
    """exp(rate * x) where x is below 0; else 1."""
    return exp(minimum(x * rate, 0.0))


elu = elementwise("elu(x, alpha, rate) -> y", Laws(domain={"alpha": "positive", "rate": "positive"}),
                  formula=lambda x, alpha, rate: where(greater(x, 0.0), x,
                                                       expm1(minimum(x * rate, 0.0)) * alpha),
                  grad={"x": lambda dy, x, alpha, rate: where(greater(x, 0.0), dy,
                                                              dy * (alpha * rate) * _below(x, rate)),
                        "alpha": lambda dy, x, rate: where_false(greater(x, 0.0),
                                                                 dy * expm1(minimum(x * rate, 0.0))),
                        "rate": lambda dy, x, alpha, rate: where_false(greater(x, 0.0),
                                                                       dy * alpha * x * _below(x, rate))},
                  doc="x where x > 0, alpha * (exp(rate * x) - 1) elsewhere.")
