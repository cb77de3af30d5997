"""Law: a Python number combined with an integer tensor keeps its value. A function either raises or matches
exact arithmetic: no dtype silently turns 300 into 44 (uint8), or NaN or 1e20 into an arbitrary integer.
"""
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import FlowError

F = nn.functional
KINDS = ["int8", "uint8", "int16", "int32", "int64", "bool"]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def limits(kind: str) -> tuple[int, int]:
    return (0, 1) if kind == "bool" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))


def list_numbers(kind: str) -> list:
    low, high = limits(kind)
    return ([low - 1, high + 1, low, high, low - 300, high + 300, -1, 0, 1, 2, math.nan, math.inf, -math.inf,
             1e20, -1e20,
             2 ** 63, 2 ** 64, 2 ** 64 + 1, -2 ** 63 - 1, 0.5, -0.5, high + 0.5, low - 0.5, 2.0, True,
             np.int64(300), np.float32(0.5), np.int8(-1)])


def elements(kind: str) -> list:
    low, high = limits(kind)
    return [bool(n) for n in (0, 1, 1, 0)] if kind == "bool" else [low, high, 1, 3, high - 1]


def plain(v):
    return v.item() if isinstance(v, np.generic) else v


def make_tensor(kind: str) -> flow.Tensor:
    return flow.tensor(elements(kind), dtype=getattr(flow, kind))


def compute_or_none(f, *args):
    """Return the result of f as plain numbers, or None if it raises."""
    try:
        y = f(*args)
    except FlowError:
        return None
    return y.tolist()


def whole(v) -> int | None:
    return int(v) if math.isfinite(v) else None


def wrapped(n: int, kind: str) -> int:
    low, high = limits(kind)
    return (n - low) % (high - low + 1) + low


# ---- comparisons never raise
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", COMPARISONS, ids=lambda f: f.__name__)
def test_comparisons_are_exact(op, kind):
    x = make_tensor(kind)
    for v in list_numbers(kind):
        want = [op(n, plain(v)) for n in elements(kind)]
        assert op(x, v).tolist() == want, v
        assert getattr(flow, op.__name__)(x, v).tolist() == want, v
        assert getattr(x, op.__name__)(v).tolist() == want, v
        assert op(x[0], v).tolist() == want[0]
        assert op(v, x).tolist() == [op(plain(v), n) for n in elements(kind)], v
        y = x.clone()
        getattr(y, op.__name__ + "_")(v)
        assert y.tolist() == want, v
        if math.isfinite(v) and isinstance(plain(v), int) and -2 ** 63 <= v < 2 ** 63:
            assert op(x, flow.tensor(v)).tolist() == want, v             # also for a 0-dim tensor


@given(kind=st.sampled_from(KINDS[:4]), data=st.data())
def test_comparisons_of_any_number(kind, data):
    low, high = limits(kind)
    some = st.one_of(st.integers(2 * low, 2 * high + 2), st.integers(low - 3, low + 3),
                     st.integers(high - 3, high + 3), st.floats(), st.integers(-2 ** 70, 2 ** 70))
    n, v, op = data.draw(st.integers(low, high)), data.draw(some), data.draw(st.sampled_from(COMPARISONS))
    assert op(flow.tensor([n], dtype=getattr(flow, kind)), v).tolist() == [op(n, v)]


@pytest.mark.parametrize("kind", KINDS)
def test_truth_values_and_searches(kind):
    x = make_tensor(kind)
    order = x.sort()[0]
    for v in list_numbers(kind):
        p = plain(v)
        assert flow.isin(x, v).tolist() == [n == p for n in elements(kind)], v
        assert flow.isin(v, x).item() is any(n == p for n in elements(kind)), v
        assert flow.logical_and(x, v).tolist() == [bool(n) and bool(p) for n in elements(kind)]
        assert flow.logical_or(x, v).tolist() == [bool(n) or bool(p) for n in elements(kind)]
        assert flow.logical_xor(x, v).tolist() == [bool(n) != bool(p) for n in elements(kind)]
        if kind == "bool":                               # bools have no order to search
            continue
        for right in (False, True):
            want = sum((n <= p if right else n < p) or p != p for n in elements(kind))
            assert flow.searchsorted(order, v, right=right).item() == want, (v, right)
            assert flow.bucketize(v, order, right=right).item() == want


# ---- bounds raise only if they would be returned
@pytest.mark.parametrize("kind", KINDS[:4])
def test_clip_accepts_bounds_outside_the_dtype(kind):
    x, (low, high) = make_tensor(kind), limits(kind)
    for v in list_numbers(kind):
        p = plain(v)
        if isinstance(p, bool) or not isinstance(p, int):
            continue                                     # the result for a float bound is a float
        for f, pick in ((lambda x, v: flow.clamp(x, min=v), max), (flow.clamp_min, max), (flow.maximum, max),
                        (lambda x, v: x.clone().clamp_(min=v), max), (lambda x, v: flow.clamp(x, max=v), min),
                        (flow.clamp_max, min), (flow.minimum, min), (lambda x, v: x.clone().clamp_(max=v),
                                                                     min)):
            want = [pick(n, p) for n in elements(kind)]
            free = all(low <= n <= high for n in want)
            assert compute_or_none(f, x, v) == (want if free else None), v
    assert flow.clip(x, low - 1, high + 1).tolist() == elements(kind)
    assert flow.clamp(x, low - 300, high + 300).dtype is x.dtype


# ---- writes
def _write_first_element(x, v):
    y = x.clone()
    y[0] = v
    return y[:1]


def _scattered(x, v):
    return x.scatter(0, flow.tensor([0]), v)[:1]


WRITES = {
    "fill_": lambda x, v: x.clone().fill_(v)[:1], "copy_": lambda x, v: x.clone().copy_(v)[:1],
    "setitem": _write_first_element, "masked_fill": lambda x, v: x.masked_fill(x == x, v)[:1],
    "masked_fill_": lambda x, v: x.clone().masked_fill_(x == x, v)[:1],
    "index_fill": lambda x, v: x.index_fill(0, flow.tensor([0]), v)[:1], "scatter": _scattered,
    "index_put": lambda x, v: x.index_put((flow.tensor([0]),), flow.tensor(v, dtype=x.dtype))[:1],
    "pad": lambda x, v: F.pad(x, (1, 0), value=v)[:1], "full": lambda x, v: flow.full((1,), v, dtype=x.dtype),
    "full_like": lambda x, v: flow.full_like(x, v)[:1], "new_full": lambda x, v: x.new_full((1,), v),
    "tensor": lambda x, v: flow.tensor([v], dtype=x.dtype),
    "tensor0": lambda x, v: flow.tensor(v, dtype=x.dtype).reshape(1),
    "nested": lambda x, v: flow.tensor([[0], [v]], dtype=x.dtype)[1],
    "as_tensor": lambda x, v: flow.as_tensor([v], dtype=x.dtype),
    "new_tensor": lambda x, v: x.new_tensor([v]),
    "constant": lambda x, v: REGISTRY["constant"](shape=(1,), value=v, dtype=x.dtype),
    "linspace": lambda x, v: flow.linspace(v, v, 1, dtype=x.dtype),
    "randint": lambda x, v: flow.randint(v, v + 1, (1,), dtype=x.dtype),
    "arange": lambda x, v: flow.arange(v, v + 1, dtype=x.dtype),
    "random_": lambda x, v: x.clone().random_(v, v + 1)[:1],
    "constant_": lambda x, v: nn.init.constant_(x.clone(), v)[:1],
}
COUNTED = {"randint", "random_", "arange", "linspace"}         # in 64 bits, by integers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WRITES)
def test_numbers_that_do_not_fit_are_not_written(name, kind):
    x, (low, high) = make_tensor(kind), limits(kind)
    for v in list_numbers(kind):
        if name in COUNTED and (isinstance(v, float) or kind == "bool"):
            continue
        got = compute_or_none(WRITES[name], x, v)
        if kind == "bool":
            assert got in (None, [bool(v)]), v
        elif whole(v) is None or not low <= whole(v) <= high:
            assert got is None, v
        elif name not in COUNTED and plain(v) == whole(v):
            assert got == [whole(v)], v
        else:
            assert got in (None, [whole(v)]), v


@pytest.mark.parametrize("name", WRITES)
def test_the_error_names_the_function(name):
    with pytest.raises(FlowError) as e:
        WRITES[name](make_tensor("uint8"), 300)
    assert not str(e.value).startswith("scalar:"), str(e.value)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_where_refuses_numbers_outside_the_dtype(kind):
    """A float operand gives a float result; an integer has to fit."""
    x, (low, high) = make_tensor(kind), limits(kind)
    for v in list_numbers(kind):
        p = plain(v)
        if isinstance(p, int):
            want = [p] * len(elements(kind)) if low <= p <= high else None
            assert (compute_or_none(flow.where, x != x, x, v) == want
                    and compute_or_none(flow.where, x == x, v, x) == want), v


# ---- arithmetic: + - * and bit operators wrap, like their results; other operators have no such law
def _divides(f):
    return lambda a, b: None if b == 0 else f(a, b)


WRAP = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "bitwise_and": operator.and_,
        "bitwise_or": operator.or_, "bitwise_xor": operator.xor}
EXACT = {"floor_divide": _divides(operator.floordiv), "remainder": _divides(operator.mod),
         "fmod": _divides(lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b))),
         "pow": lambda a, b: pow(a, b, 2 ** 64) if b >= 0 else None}


@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("name", [*WRAP, *EXACT])
def test_arithmetic_with_numbers_outside_the_dtype_is_refused(name, kind):
    x, (low, high), f = make_tensor(kind), limits(kind), {**WRAP, **EXACT}[name]
    for v in list_numbers(kind):
        p = plain(v)
        if isinstance(p, bool) or not isinstance(p, int):
            continue
        got = compute_or_none(getattr(flow, name), x, v)
        if name in EXACT and not low <= p <= high or not -2 ** 63 <= p < 2 ** 64:
            assert got is None, v
        elif name in WRAP or got is not None:
            assert got == [wrapped(f(n, p), kind) for n in elements(kind)], v


# ---- the same rule in graphs and in the registry
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_agree_with_eager_mode(kind):
    x, (low, high) = make_tensor(kind), limits(kind)
    todo = [*(lambda x, v, f=f: f(x, v) for f in COMPARISONS), flow.isin]
    todo += [] if kind == "bool" else [flow.maximum, flow.minimum, flow.add, flow.pow, *(
        WRITES[name] for name in ("masked_fill", "fill_", "setitem", "full_like", "pad"))]
    for v in (low - 1, high + 1, low, high, 2 ** 64, 0.5, math.nan, math.inf, 1e20):
        for f in todo:
            class Graph(nn.Graph):
                def build(self, x):
                    return f(x, v)  # noqa: B023

            # repr compares NaNs
            assert repr(compute_or_none(Graph(), x)) == repr(compute_or_none(f, x, v)), (f, v)


RECORDS = sorted(n for n, op in REGISTRY.items() if op.elementwise and len(op.inputs) == 2 and not op.attrs)


@pytest.mark.parametrize("name", RECORDS)
def test_registry_refuses_numbers_outside_the_dtype(name):
    for kind in KINDS[:4]:
        for v in (limits(kind)[0] - 1, limits(kind)[1] + 1, 2 ** 64):
            for args in ((make_tensor(kind), v), (v, make_tensor(kind))):
                with pytest.raises(FlowError):
                    REGISTRY[name](*args)


def test_labels_of_uint8_and_the_class_that_is_ignored():
    """-100 is not a uint8 label, so class 156 is not ignored."""
    rows, labels = flow.randn(3, 200), flow.tensor([156, 3, 156])
    want = F.cross_entropy(rows, labels).item()
    assert F.cross_entropy(rows, labels.to(flow.uint8)).item() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("kind", [flow.int8, flow.uint8, flow.int16, flow.int32], ids=repr)
def test_narrow_labels_equal_int64_labels(kind):
    top = min(kind.limits[1], 4096)
    rows, labels = flow.randn(5, top + 1, dtype=flow.float64), flow.tensor([0, top, top // 2, 3, top])
    assert F.cross_entropy(rows, labels.to(kind)).item() == F.cross_entropy(rows, labels).item()
    one_hot = REGISTRY["one_hot"]
    assert (one_hot(labels.to(kind), depth=top + 1) == one_hot(labels, depth=top + 1)).all()


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_minus_zero_differs_from_zero(first):
    """It compares equal to 0.0, so the call cache or common-subexpression elimination could confuse the
    two.
    """
    class G(flow.nn.Graph):
        def build(self, x):
            return flow.full((2,), first), flow.full((2,), -first)

    one, other = flow.full((2,), first), flow.full((2,), -first)
    x = flow.zeros(2)
    assert [math.copysign(1, y[0].item()) for y in (one, other, *G()(x))] == [math.copysign(1, v) for v in (
        first, -first, first, -first)]
