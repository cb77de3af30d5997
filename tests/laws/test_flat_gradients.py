"""Law: for inputs that are all 0 or all equal, every op's gradient is finite where its results are, or the
table explains why its slope is not. (tests/tensor/test_flat_inputs.py checks the functions composed of
ops.)
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import LinAlgError

from .calls import attributes, draw_values, input_name, types_of
from .test_gradients import CALLS, learnable, projected, tensors_of

# (op, number) -> reason
STEEP = {
    ("sqrt", 0.0): "the slope of a root at 0 is infinite", ("xdivy", 0.0): "x / 0, also where x is 0",
    **dict.fromkeys([("asin", 1.0), ("acos", 1.0), ("asin", -1.0), ("acos", -1.0), ("acosh", 1.0)],
                    "a circle ends upright"),
    ("pow", -1.0): "in the exponent: the logarithm of -1",
}
SINGULAR = {"inverse", "solve", "slogdet", "cholesky", "lu"}         # a matrix of equal numbers is refused


def finite(arrays) -> bool:
    return all(np.isfinite(a.detach().numpy()).all() for a in arrays)


def fill_floats(op, example, number):
    """Return the arguments of the example, with every float set to the same number."""
    types = types_of(op, example, np.float64)
    return [np.full(s, number) if np.issubdtype(t, np.floating) else
            draw_values(op.domain.get(input_name(op, i), "any"), s, t, np.random.default_rng(0), i)
            for i, (s, t) in enumerate(zip(example["shapes"], types))]


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, 0.5])
def test_inputs_of_equal_numbers_have_finite_gradients(number):
    steep, refused = set(), set()
    for op, example in CALLS:
        arrays = fill_floats(op, example, number)
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
    may = {"qr"} & refused if number else {"qr"}  # the second pivot of equal numbers is 0, or nearly 0
    assert refused == SINGULAR | may
