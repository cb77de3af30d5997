"""LBFGS: it finds minima, its line search satisfies the Wolfe conditions, and it equals PyTorch's
numerically.
"""
import copy
import importlib
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu import mock
from flowedu.optim.line_search import Point, strong_wolfe

SEARCHES = [None, "strong_wolfe"]


def valley(m, p):
    """Return Rosenbrock's function with a third variable."""
    x, y = p[0][0], p[0][1]
    return (1 - x) ** 2 + 10 * (y - x * x) ** 2 + (p[1] - x) ** 4


def minimize_loss(m, cls, t, loss=valley, steps=6, after=None, **options):
    p = [m.nn.Parameter(t(np.array([-1.5, 2.0]))), m.nn.Parameter(t(np.array(0.7)))]
    opt, losses = cls(p, **options), []

    def closure():
        opt.zero_grad()
        y = loss(m, p)
        y.backward()
        return y

    for k in range(steps):
        losses.append(float(opt.step(closure).detach()))
        if after is not None:
            opt = after(opt, p, k)
    return losses, [x.detach().numpy().copy() for x in p], opt


@pytest.mark.parametrize("history", [2, 100])
def test_lbfgs_minimizes_rosenbrocks_function(history):
    losses, (x, z), opt = minimize_loss(flow, flow.optim.LBFGS, flow.tensor, steps=12, max_iter=15,
                                        history_size=history, line_search_fn="strong_wolfe")
    np.testing.assert_allclose([*x, z], 1, atol=1e-2)
    # Both are within 1e-2 of the minimum, where the function is about 500 * (x * x - z) ** 2.
    assert losses[0] > 1 > losses[-1]
    memory = opt.state[opt.param_groups[0]["params"][0]]
    assert len(memory["old_dirs"]) <= history and memory["func_evals"] >= memory["n_iter"] > 12


@given(st.integers(0, 99), st.integers(1, 6))
def test_a_quadratic_of_n_variables_takes_about_n_exact_steps(seed, n):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n))
    a, b = a @ a.T + np.eye(n), rng.standard_normal(n)
    x = flow.nn.Parameter(flow.zeros(n, dtype=flow.float64))
    opt = flow.optim.LBFGS([x], max_iter=60, line_search_fn="strong_wolfe", tolerance_grad=1e-12,
                           tolerance_change=1e-15)
    m, v = flow.tensor(a), flow.tensor(b)

    def closure():
        opt.zero_grad()
        y = x @ m @ x / 2 - v @ x
        y.backward()
        return y

    opt.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(a, b), rtol=0, atol=1e-6)


@given(st.floats(0.01, 5.0), st.floats(0.1, 3.0), st.floats(-2.0, 2.0))
def test_the_line_search_satisfies_the_wolfe_conditions(t, width, shift):
    def at(s):
        z = (s - 2) / width
        return Point(s, z * z + np.sin(shift * s), flow.tensor(0.0),
                     2 * z / width + shift * np.cos(shift * s))

    start = at(0.0)
    if start.slope < -1e-3:
        found, asked = strong_wolfe(at, start, t, 1.0)
        # c1 = 1e-4 and c2 = 0.9 are the constants of the two Wolfe conditions in PyTorch's line search
        assert (found.loss <= start.loss + 1e-4 * found.t * start.slope
                and abs(found.slope) <= -0.9 * start.slope)
        assert 1 <= asked <= 26 and found.t > 0


@pytest.mark.parametrize("search", SEARCHES)
def test_a_copy_continues_from_the_state(search):
    def reloaded(opt, p, k):
        other = flow.optim.LBFGS(p, lr=9.0)
        other.load_state_dict(copy.deepcopy(opt.state_dict()))
        return other if k == 1 else opt

    plain = minimize_loss(flow, flow.optim.LBFGS, flow.tensor, lr=0.3, max_iter=3, line_search_fn=search)
    # the closure of `minimize_loss` clears gradients by its first optimizer, which has the same parameters
    again = minimize_loss(flow, flow.optim.LBFGS, flow.tensor, lr=0.3, max_iter=3, line_search_fn=search,
                          after=reloaded)
    assert plain[0] == again[0]


def test_invalid_arguments_are_refused():
    p = [flow.nn.Parameter(flow.ones(2)) for _ in range(2)]
    with refused(ValueError, "one group"):
        flow.optim.LBFGS([{"params": p[:1]}, {"params": p[1:]}])
    with refused(TypeError, "closure"):
        flow.optim.LBFGS(p).step()
    with refused(ValueError, "strong_wolfe"):
        flow.optim.LBFGS(p, line_search_fn="armijo")
    with refused(NotImplementedError, "nn.Graph"):
        opt = flow.optim.LBFGS(p)
        opt.update_of(opt.param_groups[0])
    with refused(ValueError, "does not fit"):
        flow.optim.LBFGS(p).load_state_dict(flow.optim.LBFGS(p[:1]).state_dict())
    assert inf > minimize_loss(flow, flow.optim.LBFGS, flow.tensor, max_iter=0)[0][0]


@pytest.mark.torch
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("options", [{"lr": 1.0, "max_iter": 7}, {"lr": 0.05, "max_iter": 7}, {
    "lr": 0.5, "history_size": 2, "max_iter": 5}, {"max_iter": 9, "max_eval": 4},
                                     {"max_iter": 4, "tolerance_grad": 3.0}])
def test_results_equal_pytorchs(search, options):
    torch = pytest.importorskip("torch")
    with mock.enable("torch"):
        under_its_name = importlib.import_module("torch.optim").LBFGS
    want = minimize_loss(torch, torch.optim.LBFGS, torch.tensor, line_search_fn=search, **options)
    for cls in (flow.optim.LBFGS, under_its_name):
        got = minimize_loss(flow, cls, flow.tensor, line_search_fn=search, **options)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
        for a, b in zip(got[1], want[1]):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    theirs, ours = (o.state_dict()["state"][0] for o in (want[2], got[2]))
    assert {k for k in theirs if k != "al"} == {*ours} and theirs["n_iter"] == ours["n_iter"]
    assert theirs["func_evals"] == ours["func_evals"]


@given(start=st.lists(st.floats(0.1, 5.0), min_size=1, max_size=3), max_iter=st.integers(2, 12))
def test_a_line_search_over_nan_keeps_parameters_finite(start, max_iter):
    """The logarithm of a negative number is NaN, which the search must bisect away from. It evaluates the
    loss at most max_eval times, plus once at the start of a search.
    """
    w = flow.nn.Parameter(flow.tensor(start, dtype=flow.float64))
    optimizer = flow.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=max_iter)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = 2 * w.log().sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    optimizer.step(closure)
    assert w.isfinite().all()
    assert len(calls) <= max_iter * 5 // 4 + 1
