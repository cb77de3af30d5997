"""Law: every function that PyTorch and flowedu share has the same dtype, shape, values, gradients, views, and
errors.
"""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import flowedu as flow  # noqa: E402
from common import flatten  # noqa: E402

from .against import assert_same_as_torch  # noqa: E402
from .cases import ADVANCED, CASTS, CREATION, EVERY, INDEX  # noqa: E402
from .inputs import INPUTS, split  # noqa: E402
from .lines import evaluate_line, gradients, variables  # noqa: E402
from .refusals import ASSIGNMENTS, REFUSED, rows  # noqa: E402


def has_nan_gradient(g):
    return g is not None and bool(torch.isnan(g).any())


@pytest.mark.parametrize("case", EVERY)
def test_values_and_gradients_equal_pytorchs(case):
    text, flags = split(case)
    ours, theirs = variables(text, flow, True), variables(text, torch, True)
    got, want = evaluate_line(text, flow, ours), evaluate_line(text, torch, theirs)
    if "mode" in flags:                                    # either of several equal elements may be chosen
        got, want = got.values, want.values
    a, b = flatten(got), flatten(want)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert_same_as_torch(x, y)
        if isinstance(y, torch.Tensor) and "values" not in flags:
            assert x.requires_grad == y.requires_grad
    if "view" in flags:
        for x, y in zip(a, b):
            assert all(m == n for m, n, size in zip(x.stride(), y.stride(), y.shape) if size > 1
                       and y.numel())
            assert x._base is not None or x is next(iter(ours.values()))
    if "values" in flags or not any(isinstance(y, torch.Tensor) and y.requires_grad for y in b):
        return
    da, db = gradients(got, ours, flow), gradients(want, theirs, torch)
    for name, g in db.items():
        assert (g is None) == (da[name] is None), name
        if g is not None and not has_nan_gradient(g):
            assert_same_as_torch(da[name], g, 1e-8 if "h" not in text.split() else 1e-2)


@pytest.mark.parametrize("case", CREATION + CASTS)
def test_creation_and_conversion_equal_pytorchs(case):
    got, want = (evaluate_line(case, flow, variables(case, flow, False)),
                 evaluate_line(case, torch, variables(case, torch, False)))
    assert_same_as_torch(got, want)


@pytest.mark.parametrize("case", INDEX + ADVANCED)
@pytest.mark.parametrize("value", ["2.5", "v1"])
def test_assignments_equal_pytorchs(case, value):
    """x[index] = value changes the same elements. A value with a gradient receives the gradient of the
    elements it wrote.
    """
    text, _ = split(case)
    name, index = text.split("[", 1)[0], text[text.index("[") + 1:-1]
    out = []
    for m in (flow, torch):
        env = variables(text, m, False)
        x = env[name].clone()
        if value == "v1":
            shape = tuple(evaluate_line(text, m, env).shape)
            v = m.tensor(np.random.default_rng(1).standard_normal(shape[-1:])).to(x.dtype)
        else:
            v = 2.5
        if x.dtype.is_floating_point:
            leaf = env[name].requires_grad_()
            x = leaf * 1.0
            if value == "v1":
                v = v.requires_grad_()
            exec(f"x[{index}] = v", {"m": m, **env, "x": x, "v": v})
            w = m.tensor(np.random.default_rng(2).standard_normal(tuple(x.shape)))
            (x * w).sum().backward()
            out.append((x, leaf.grad, None if value != "v1" else v.grad))
        else:
            exec(f"x[{index}] = v", {"m": m, **env, "x": x, "v": v})
            out.append((x, None, None))
    x, y = out[0][0], out[1][0]
    assert_same_as_torch(x, y)
    places = evaluate_line(text, torch, {**variables(text, torch, False),
                                         name: torch.arange(y.numel()).reshape(y.shape)})
    if places.unique().numel() == places.numel():         # otherwise PyTorch gives every value a gradient
        for a, b in zip(out[0][1:], out[1][1:]):
            if a is None:
                assert b is None or not b.any(), "no gradient: PyTorch has none, or zeros"
            else:
                assert_same_as_torch(a, b)


@pytest.mark.parametrize("text, kind", rows(REFUSED))
def test_flowedu_refuses_what_pytorch_refuses(text, kind):
    """test_refusals.py checks flowedu's messages."""
    with pytest.raises(Exception) as theirs:
        evaluate_line(text, torch, variables(text, torch, False))
    assert ("RuntimeError" if theirs.type is NotImplementedError else theirs.type.__name__) == kind


@pytest.mark.parametrize("text, kind", rows(ASSIGNMENTS))
def test_flowedu_refuses_assignments_that_pytorch_refuses(text, kind):
    with pytest.raises(Exception) as theirs:
        exec(text, {n: torch.tensor(v) for n, v in INPUTS.items()})
    assert theirs.type.__name__ == kind
