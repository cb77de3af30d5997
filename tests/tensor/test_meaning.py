"""Law: every line of cases.py matches its NumPy reference: dtype, shape, values, gradients, memory,
assignment.

Gradients are compared with finite differences of the reference, and views with NumPy's views.
"""
import re

import numpy as np
import pytest

import flowedu as flow
from common import flatten

from .cases import ADVANCED, CASTS, CREATION, EVERY, INDEX, MASKS, OURS
from .inputs import INPUTS, split
from .lines import draw_weights, evaluate_line, gradients, names_in, variables
from .meaning import m
from .meaning.kinds import T, as_kind, category

pytestmark = pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
CLOSE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-5, "float64": 1e-9}
STEP = 1e-6


def evaluate_reference(text: str, inputs: dict):
    with np.errstate(all="ignore"):
        return evaluate_line(text, m, inputs)


def assert_matches(got, want):
    if not isinstance(want, T):
        assert got == want and type(got).__name__ in (type(want).__name__, "Size"), (got, want)
        return
    assert isinstance(got, flow.Tensor), type(got)
    assert (got.dtype.name == want.kind and tuple(got.shape) == want.shape), (got.dtype, got.shape, want.kind,
                                                                              want.shape)
    a = (got.float() if want.kind == "bfloat16" else got).detach().numpy()
    if category(want.kind) == 2:
        np.testing.assert_allclose(a.astype(float), want.a.astype(float), rtol=CLOSE[want.kind],
                                   atol=CLOSE[want.kind])
    else:
        np.testing.assert_array_equal(a, want.a)


def finite_differences(text: str, inputs: dict, name: str):
    """Return d(weighted sum of all floating results)/d(input) for each element, NaN where the result is not
    finite.
    """
    x = inputs[name]
    found, factors = np.zeros(x.shape), draw_weights(flatten(evaluate_reference(text, inputs)))

    def results(k, step):
        moved = x.a.copy()
        moved[k] += step
        return flatten(evaluate_reference(text, {**inputs, name: T(moved)}))

    for k in np.ndindex(*x.shape):
        for y, z, w in zip(results(k, STEP), results(k, -STEP), factors):
            if category(y.kind) == 2:
                with np.errstate(invalid="ignore"):
                    found[k] += np.where(y.a == z.a, 0, (y.a - z.a) / (2 * STEP) * w).sum()
    return found


@pytest.mark.parametrize("case", EVERY + OURS)
def test_values_and_gradients_equal_the_reference(case):
    text, flags = split(case)
    ours, theirs = variables(text, flow, True), variables(text, m, False)
    got, want = evaluate_line(text, flow, ours), evaluate_reference(text, theirs)
    if "mode" in flags:                                    # either of several equal elements may be chosen
        got, want = got.values, want.values
    a, b = flatten(got), flatten(want)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert_matches(x, y)
    if "view" in flags:
        first = min(ours, key=lambda name: re.search(rf"\b{name}\b", text).start())
        for x, y in zip(a, b):
            size = y.a.itemsize
            assert all(p == q // size for p, q, n in zip(x.stride(), y.a.strides, y.shape) if n > 1)

            def where(array):
                return array.__array_interface__["data"][0]

            assert x.data_ptr() - ours[first].data_ptr() == where(y.a) - where(theirs[first].a)
            assert x._base is not None or x is ours[first]
    rough = any(isinstance(y, T) and category(y.kind) == 2 and y.kind != "float64" for y in b)
    if {"values", "mode", "infinite", "ties"} & set(flags.split()) or rough or not any(
            isinstance(y, flow.Tensor) and y.requires_grad for y in a):
        return
    for name, g in gradients(got, ours, flow).items():
        want = finite_differences(text, theirs, name)
        known = np.isfinite(want)
        found = np.zeros(want.shape) if g is None else g.numpy()
        np.testing.assert_allclose(found[known], want[known], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("case", CREATION + CASTS)
def test_creation_and_conversion_equal_the_reference(case):
    got, want = (evaluate_line(case, flow, variables(case, flow, False)),
                 evaluate_line(case, m, variables(case, m, False)))
    if case.startswith(("m.empty", "m.Tensor(0")):         # no elements, or arbitrary ones
        assert got.dtype.name == want.kind and tuple(got.shape) == want.shape
    else:
        assert_matches(got, want)


@pytest.mark.parametrize("case", INDEX + ADVANCED + MASKS)
@pytest.mark.parametrize("value", ["number", "row"])
def test_assignments_equal_the_reference(case, value):
    """x[index] = value changes the elements that NumPy changes. The gradient of x covers the unwritten
    elements, that of value the written ones.
    """
    text, _ = split(case)
    name, index = text.split("[", 1)[0], text[text.index("[") + 1:-1]
    env, twin = variables(text, flow, False), variables(text, m, False)
    floating = category(twin[name].kind) == 2
    x, y = env[name].clone(), T(twin[name].a.copy())
    if value == "row":
        shape = evaluate_reference(text, twin).shape[-1:]
        row = np.random.default_rng(1).standard_normal(shape).astype(y.a.dtype)
        leaf, v = flow.tensor(row, requires_grad=floating), T(row)
    else:
        leaf, v = 2.5, 2.5
    base = x.requires_grad_() if floating else x
    x = base * 1.0 if floating else x
    exec(f"x[{index}] = v", {"m": flow, **env, "x": x, "v": leaf})
    exec(f"x[{index}] = v", {"m": m, **twin, "x": y, "v": v})
    assert_matches(x, y)
    if not floating:
        return
    w = np.random.default_rng(2).standard_normal(y.shape)
    (x * flow.tensor(w)).sum().backward()
    places = T(np.arange(y.a.size).reshape(y.shape))
    hit = eval(f"x[{index}]", {"m": m, **twin, "x": places}).a
    kept = np.where(np.isin(places.a, hit), 0, w)
    np.testing.assert_allclose(base.grad.numpy(), kept, rtol=1e-12)
    # with repeated positions, the order of writes is undefined
    if value == "row" and len(np.unique(hit)) == hit.size:
        share = np.zeros(row.size)
        np.add.at(share, np.broadcast_to(np.arange(row.size).reshape(row.shape), hit.shape), w.ravel()[hit])
        got = np.zeros(row.size) if leaf.grad is None else leaf.grad.numpy().ravel()
        np.testing.assert_allclose(got, share, rtol=1e-12, atol=1e-12)


def test_the_reference_does_not_import_flowedu():
    from pathlib import Path
    for file in (Path(__file__).parent / "meaning").glob("*.py"):
        assert "import flowedu" not in file.read_text(encoding="utf-8")
    assert (as_kind([1.5], "int8").a.tolist() == [1] and names_in("m.f(a, q)") == ["a", "q"]
            and INPUTS["a"].shape == (3, 4))
