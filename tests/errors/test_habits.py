"""Aliases from other libraries: keepdims for keepdim, sizes by name, out as in OneFlow, add of several
tensors. Law: such a call equals the call with flowedu's names; other unknown keywords are errors.
"""
import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.diagnostics.habits import OUT, SIZED
from flowedu.errors import CallError, FlowError, UnsupportedError

HOMES = {"flow": flow, "flow.linalg": flow.linalg, "flow.Tensor": flow.Tensor,
         "flow.nn.functional": flow.nn.functional}
X = np.random.default_rng(3).uniform(0.1, 1.0, (4, 4))
GIVEN = {"dim": 1, "q": 0.25, "k": 2, "ord": 2, "p": 2, "x2": flow.tensor(X) + 1, "other": flow.tensor(X) + 1}


def keeping():
    """Return (path, function) for all functions with keepdim."""
    for home, module in HOMES.items():
        for name in dir(module):
            f = getattr(module, name)
            if name[0] != "_" and callable(f) and not isinstance(f, type):
                try:
                    found = inspect.signature(f).parameters
                except (TypeError, ValueError):
                    continue
                if "keepdim" in found:
                    yield f"{home}.{name}", f


KEEPING = dict(keeping())


def test_the_search_finds_functions():
    assert len(KEEPING) >= 50 and {"flow.sum", "flow.Tensor.max", "flow.linalg.norm"} <= {*KEEPING}


@pytest.mark.parametrize("path", KEEPING)
def test_keepdims_is_keepdim(path):
    f = KEEPING[path]
    needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty][1:]
    args = [flow.tensor(X), *(GIVEN[p.name] for p in needed)]
    more = ({"dim": 1} if "dim" in inspect.signature(f).parameters and "dim" not in [p.name for p in needed]
            else {})
    if path.endswith("matrix_norm"):
        more = {"dim": (0, 1)}
    want, got = (f(*args, **more, **{word: True}) for word in ("keepdim", "keepdims"))
    for a, b in zip(*((y if isinstance(y, tuple) else (y,)) for y in (want, got)), strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert [*(got if isinstance(got, tuple) else (got,))][0].ndim >= 2 - path.endswith("pairwise_distance")


@pytest.mark.parametrize("name", sorted(SIZED))
@given(shape=st.lists(st.integers(0, 3), max_size=3))
def test_sizes_may_be_passed_by_name(name, shape):
    f = getattr(flow.ones(1, dtype=flow.float64) if name.startswith("new_") else flow, name)
    found = []
    for call in (lambda: f(*shape), lambda: f(size=tuple(shape)), lambda: f(size=shape, dtype=flow.float32)):
        flow.manual_seed(5)
        found.append(call())
    assert all(tuple(y.shape) == tuple(shape) for y in found) and found[2].dtype is flow.float32
    assert "empty" in name or flow.equal(found[0], found[1])


@given(st.lists(st.lists(st.floats(-9, 9), min_size=2, max_size=2), min_size=1, max_size=6), st.booleans())
def test_add_sums_any_number_of_tensors(rows, as_list):
    xs = [flow.tensor(r, dtype=flow.float64, requires_grad=True) for r in rows]
    if len(xs) == 1 and not as_list:
        return
    y = flow.add(xs) if as_list else flow.add(*xs)
    np.testing.assert_allclose(y.detach().numpy(), np.sum(rows, 0), rtol=1e-12, atol=1e-12)
    y.sum().backward()
    assert all(x.grad.tolist() == [1, 1] for x in xs)


def test_out_receives_the_result():
    """The values equal the call without out, and are stored in out itself."""
    x = flow.tensor(X)
    calls = {"normal": lambda **k: flow.normal(0.5, 2.0, (4, 4), dtype=flow.float64, **k),
             "quantile": lambda **k: flow.quantile(x, 0.3, 0, **k),
             "tensordot": lambda **k: flow.tensordot(x, x, 1, **k)}
    assert {*calls} == OUT
    for call in calls.values():
        flow.manual_seed(7)
        want = call()
        for out in (flow.full_like(want, 9.0), flow.empty(0, dtype=flow.float64)):
            flow.manual_seed(7)
            assert call(out=out) is out and flow.equal(out, want)
        assert flow.equal(call(out=None), want) or call is calls["normal"]
        for bad in (3, flow.zeros(7, dtype=flow.float64), flow.zeros(*want.shape, dtype=flow.int64)):
            with pytest.raises(CallError, match="(?s)out.*fix:"):
                call(out=bad)
        with pytest.raises(UnsupportedError, match="(?s)no gradient.*fix:"):
            call(out=flow.zeros(*want.shape, dtype=flow.float64, requires_grad=True))


@pytest.mark.parametrize("call", [
    lambda x: flow.cumsum(x, 0, keepdims=True), lambda x: x.sum(0, keepdim=True, keepdims=True),
    lambda x: flow.add(x),
    lambda x: flow.add(x, x, 3), lambda x: flow.add(), lambda x: flow.add([]),
    lambda x: flow.ones(2, size=(2,)),
    lambda x: flow.ones(sizes=(2,)), lambda x: flow.exp(x, out=x), lambda x: x.mean(keepdims=True, out=x)])
def test_unknown_keywords_are_refused(call):
    with pytest.raises(FlowError):
        call(flow.ones(2, 3))


def test_errors_inside_the_function_are_unchanged():
    with pytest.raises(FlowError, match="(?s)fix:"):
        flow.sum(flow.ones(2), dim="x", keepdims=True)
