"""Law: of inputs that are all 0, or all the same number, every record's gradient is finite where its results are, or
the table says why its slope is not. (tests/tensor/test_flat_inputs.py asks it of the functions made of them.) And where a
function is straight between its corners, the derivative of its gradient is 0, and no error."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import LinAlgError
from flowedu.nn import functional as F

from .calls import attributes, input_name, types_of, values
from .test_gradients import CALLS, learnable, projected, tensors_of

# (record, number) -> why
STEEP = {
    ("sqrt", 0.0): "the slope of a root at 0 is infinite", ("xdivy", 0.0): "x / 0, also where x is 0",
    **dict.fromkeys([("asin", 1.0), ("acos", 1.0), ("asin", -1.0), ("acos", -1.0), ("acosh", 1.0)],
                    "a circle ends upright"),
    ("pow", -1.0): "in the exponent: the logarithm of -1",
}
SINGULAR = {"inverse", "solve", "slogdet", "cholesky", "lu"}         # of a matrix of equal numbers they are refused


def finite(arrays) -> bool:
    return all(np.isfinite(a.detach().numpy()).all() for a in arrays)


def flat(op, example, number):
    """The arguments of the example, every float the same number."""
    types = types_of(op, example, np.float64)
    return [np.full(s, number) if np.issubdtype(t, np.floating) else
            values(op.domain.get(input_name(op, i), "any"), s, t, np.random.default_rng(0), i)
            for i, (s, t) in enumerate(zip(example["shapes"], types))]


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, 0.5])
def test_flat_inputs_have_finite_gradients(number):
    steep, refused = set(), set()
    for op, example in CALLS:
        arrays = flat(op, example, number)
        attrs = tuple(flow.float64 if a is flow.float32 else a for a in attributes(op, example))
        which = learnable(op, arrays)
        tensors = tensors_of(arrays, which)
        try:
            out = op.call(tuple(tensors), attrs)
            out = [y for y in (out if isinstance(out, tuple) else (out,)) if y.dtype.is_floating_point]
            weights = [np.random.default_rng(0).standard_normal(tuple(y.shape)) for y in out]
            slopes = flow.grad(projected(op, attrs, tensors, weights), [tensors[i] for i in which])
        except LinAlgError:
            refused.add(op.name)
            continue
        if finite(out) and not finite(slopes):
            steep.add((op.name, number))
    assert steep == {row for row in STEEP if row[1] == number}
    assert refused == (SINGULAR if number else SINGULAR | {"qr"})


STRAIGHT = {
    "relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "hardtanh": F.hardtanh, "hardsigmoid": F.hardsigmoid,
    "hardshrink": F.hardshrink, "softshrink": F.softshrink, "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "rrelu": F.rrelu, "abs": flow.abs, "l1_loss": lambda x: F.l1_loss(x, x.detach() + 1)}


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("dtype", [flow.float32, flow.float64])
def test_the_second_derivative_of_what_is_straight_is_zero(name, dtype):
    x = flow.tensor(np.linspace(-7.05, 7, 48).reshape(1, 2, 4, 6), dtype=dtype, requires_grad=True)
    slope, = flow.autograd.grad(STRAIGHT[name](x).sum(), x, create_graph=True)
    assert slope.requires_grad and slope.abs().sum() > 0
    second, = flow.autograd.grad((slope * 3).sum(), x)
    assert second.dtype is dtype and second.shape == x.shape and not second.numpy().any()
