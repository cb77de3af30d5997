"""Steps of a formula: each step is listed once, and different constants are not merged."""
import operator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.autograd.forward import derivative
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.ops.formula import elementwise, reference, trace

ONE = ("sin", "square", "log_sigmoid", "hardsigmoid", "neg")
TWO = ("add", "sub", "mul")


@st.composite
def formulas(draw, one=ONE, first=1):
    """Draw a list of calls: (name, indices of the operands); values 0 to 3 are x, y, 2.0, and 0.5. first:
    upper bound of the first operand's index.
    """
    calls = []
    for i in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(one + TWO))
        some = st.integers(0, first) | st.integers(4, 3 + i) if i else st.integers(0, first)
        second = (draw(st.integers(0, 3)),) if name in TWO else ()
        calls.append((name, (draw(some), *second)))
    return calls


def function(calls):
    def f(x, y):
        values = [x, y, 2.0, 0.5]
        for name, ins in calls:
            a, *b = [values[i] for i in ins]
            values.append(REGISTRY[name](a) if not b else getattr(operator, name)(a, b[0]))
        return values[-1]
    return f


@given(formulas())
def test_steps_are_unique_and_compute_the_formula(calls):
    f = function(calls)
    formula = trace(f, ["x", "y"])
    steps = [(name, operands) for name, _, operands in formula.instrs]
    assert len(steps) == len(set(steps))
    x, y = np.random.default_rng(0).standard_normal((2, 5))
    known = {0: x, 1: y, **{s: np.float64(v) for s, v in formula.consts.items()}}
    for name, out, operands in formula.instrs:
        op = REGISTRY[name]
        known[out] = op.ask(op.ref, dict(zip(op.inputs, [known[o] for o in operands])))
    np.testing.assert_allclose(known[formula.outs[0]], reference(f)(x, y), rtol=1e-12)
    assert sorted({0, 1, *formula.consts,
                   *(out for _, out, _ in formula.instrs)}) == list(range(formula.nslots))


def test_positive_and_negative_zero_are_different_constants():
    formula = trace(lambda x: (x * 0.0) + (x * -0.0) + (x * 0.0), ["x"])
    assert sorted(map(repr, formula.consts.values())) == ["-0.0", "0.0"]


@given(formulas(one=("sin", "exp", "neg"), first=0))
def test_forward_mode_derivatives_equal_backward_mode(calls):
    f, y = function(calls), flow.tensor([0.5, 0.2], dtype=flow.float64)
    x = flow.tensor([0.3, -0.7], dtype=flow.float64, requires_grad=True)
    want = flow.autograd.grad(f(x, y).sum(), x)[0].numpy()
    assume(np.isfinite(want).all())                                # exp of exp of exp ... overflows
    np.testing.assert_allclose(derivative(lambda t: f(t, y), x.detach()).numpy(), want, rtol=1e-9, atol=1e-12)


def test_an_op_without_a_rule_is_refused():
    with pytest.raises(UnsupportedError, match="no rule for the rate of tanh"):
        derivative(REGISTRY["tanh"], flow.tensor([1.0]))


def test_an_elementwise_op_needs_a_formula_or_a_tile():
    with pytest.raises(ArgumentError, match="without_a_formula.*: no formula"):
        elementwise("without_a_formula(x) -> y")
    assert "without_a_formula" not in REGISTRY
