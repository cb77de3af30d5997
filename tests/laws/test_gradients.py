"""Law: first and second gradients equal derivatives. Float64, to 1e-6, along random directions that involve
every element, so that a single wrong element shows.
"""
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.ops import REGISTRY

from .calls import attributes, call_inputs, cases, input_name, label, thin, types_of

CALLS = cases(lambda op: bool(op.rules))


# Floating inputs without a rule, of ops with floating results.
NO_RULE = {
    ("copysign", "y"): "only its sign is read: where there is a derivative, it is 0",
    ("fused", "xs"): "passes make it, after the gradients have been worked out",
    **dict.fromkeys([("gather_part", "params"), ("gather_part_grad", "dy"), ("dim_gather_part", "x"),
                     ("slice_part", "x"),
                     ("dim_gather_part_grad", "dy")],
                    "a device calls it; gradients are taken of the whole call"),
}


# Ops that write their inputs have no results. The list is made at import, because other tests define ops.
WITH_RESULTS = cases(lambda op: not op.mutates)
RECORDS = list(REGISTRY.values())


def test_every_floating_input_has_a_rule_or_a_reason():
    """A missing rule would silently return None as gradient."""
    missing = set()
    for op, e in WITH_RESULTS:
        specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(e["shapes"], types_of(op, e, np.float64))]
        if any(y.dtype.is_floating_point for y in op.infer(specs, attributes(op, e))):
            names = {input_name(op, i) for i, s in enumerate(specs) if s.dtype.is_floating_point}
            missing |= {(op.name, n) for n in names if "*" not in op.rules and n not in op.rules}
    assert missing <= set(NO_RULE), "these have no gradient"
    assert set(NO_RULE) <= missing, "these have one by now"


def test_every_op_is_covered():
    """Every op has examples, or is elementwise, or is an update, which test_updates.py calls by name;
    otherwise the laws would skip it.
    """
    assert {op.name for op, _ in CALLS} >= {op.name for op in RECORDS if op.rules}
    tried = {op.name for op, _ in WITH_RESULTS}
    assert {op.name for op in RECORDS if not op.mutates} <= tried
    from .test_updates import GROUPS, WRITERS
    writers = {op.name for op in RECORDS if op.mutates}
    assert writers <= set(GROUPS) | {op.name for op, _ in WRITERS}


def projected(op, attrs, tensors, weights):
    """Return the weighted sum of all floating outputs, or of their squares where LAPACK chooses signs."""
    out = op.call(tuple(tensors), attrs)
    out = [y * y if op.name in ("eigh", "svd") else y
           for y in (out if isinstance(out, tuple) else (out,)) if y.dtype.is_floating_point]
    total = None
    for y, w in zip(out, weights):
        part = (y * flow.tensor(w, dtype=y.dtype)).sum()
        total = part if total is None else total + part
    return total


def directional_derivative(f, x, v, h):
    """Return the directional derivative by a five-point difference."""
    return (-f(x + 2 * h * v) + 8 * f(x + h * v) - 8 * f(x - h * v) + f(x - 2 * h * v)) / (12 * h)


def check_slope(derivative, f, x, v, scale):
    """Compare a directional derivative with differences of f.

    A kink of f (of relu, for example) between x - 2hv and x + 2hv spoils the difference. Then the differences
    with steps h and h/2 disagree, and a smaller h is tried. An input that is too close to a kink for the
    smallest h is rejected.
    """
    for h in (1e-5, 1e-6, 1e-7):
        reference = directional_derivative(f, x, v, h)
        tolerance = 1e-6 * max(1.0, abs(reference), scale)
        if abs(derivative - reference) <= tolerance:
            return
        if abs(directional_derivative(f, x, v, h / 2) - reference) <= tolerance:
            raise AssertionError((derivative, reference))
    reject()


def test_a_kink_within_a_difference_step_is_tolerated():
    """max(x, 0) at 1e-5 and at 3e-6 has slope 1, which a difference with a step of 1e-5 misses; a wrong slope
    is detected.
    """
    def f(x):
        return float(np.maximum(x, 0).sum())

    for x in (np.array([1e-5]), np.array([3e-6]), np.array([1.0])):
        check_slope(1.0, f, x, np.ones(1), 0.0)
        with pytest.raises(AssertionError):
            check_slope(1.001, f, x, np.ones(1), 0.0)


def learnable(op, arrays):
    """Return the inputs that have a gradient rule."""
    names = [op.inputs[0]] * len(arrays) if op.variadic else op.inputs
    return [i for i, (a, n) in enumerate(zip(arrays, names)) if a.dtype.kind == "f" and ("*" in op.rules
                                                                                         or n in op.rules)]


def setup(data, op, example):
    arrays, attrs = data.draw(call_inputs(op, example, dtypes=(np.float64,), resize=False))
    attrs = tuple(flow.float64 if a is flow.float32 else a for a in attrs)      # cast
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    outs = op.infer([flow.core.values.spec.Spec(a.shape, flow.core.values.dtype.as_dtype(a.dtype))
                     for a in arrays], attrs)
    weights = [rng.standard_normal(s.shape) for s in outs if s.dtype.is_floating_point]
    return arrays, attrs, rng, weights


def tensors_of(arrays, which):
    return [flow.tensor(a, requires_grad=i in which) for i, a in enumerate(arrays)]


@pytest.mark.parametrize("case", CALLS, ids=label)
@given(data=st.data())
def test_gradient_is_the_derivative(case, data):
    op, example = case
    arrays, attrs, rng, weights = setup(data, op, example)
    which = learnable(op, arrays)
    ts = tensors_of(arrays, which)
    total = projected(op, attrs, ts, weights)
    grads = flow.grad(total, [ts[i] for i in which])
    for i, g in zip(which, grads):
        assert g.shape == arrays[i].shape
        v = rng.standard_normal(arrays[i].shape)

        def f(x, i=i):
            return projected(op, attrs, tensors_of([x if k == i else a for k, a in enumerate(arrays)], ()),
                             weights).item()

        check_slope(float(np.sum(g.numpy() * v)), f, arrays[i], v, float(np.abs(g.numpy()).max(initial=0)))


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
@given(data=st.data())
def test_second_gradient_is_the_derivative_of_the_first(case, data):
    op, example = case
    arrays, attrs, rng, weights = setup(data, op, example)
    which = learnable(op, arrays)
    directions = [rng.standard_normal(arrays[i].shape) for i in which]

    def first(ts):
        """Return <gradient, direction>, differentiably."""
        total = projected(op, attrs, ts, weights)
        grads = flow.grad(total, [ts[i] for i in which], create_graph=True)
        out = None
        for g, d in zip(grads, directions):
            part = (g * flow.tensor(d)).sum()
            out = part if out is None else out + part
        return out

    ts = tensors_of(arrays, which)
    value = first(ts)
    for i in which:
        v = rng.standard_normal(arrays[i].shape)

        def f(x, i=i):
            return first(tensors_of([x if k == i else a for k, a in enumerate(arrays)], which)).item()

        derivative = 0.0
        if value.requires_grad:
            fresh = tensors_of(arrays, which)
            first(fresh).backward()
            derivative = 0.0 if fresh[i].grad is None else float(np.sum(fresh[i].grad.numpy() * v))
        check_slope(derivative, f, arrays[i], v, 10.0)
