"""Law: int16 behaves like NumPy's, wrapped as in C, eagerly and in graphs, with PyTorch's result dtypes.
Functions of real numbers refuse it and list the dtypes they accept.
"""
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
from flowedu.errors import DTypeError, FlowError, GradientError

from .meaning.kinds import PAIRS

WHOLE = ["bool", "uint8", "int8", "int16", "int32", "int64"]
SHAPES = st.sampled_from([(4,), (2, 3), (3, 1), (1, 4), (0, 2), (), (70, 3)])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor]
DIVISIONS = [operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def arrays(dtype="int16", shape=SHAPES):
    return hnp.arrays(dtype, shape)


def assert_equal(ours, theirs, kind=None):
    theirs = np.asarray(theirs)
    assert ours.dtype.name == (kind or theirs.dtype.name) and tuple(ours.shape) == theirs.shape
    np.testing.assert_array_equal(ours.numpy(), theirs)


def change_layout(a):
    """Return the same values in another memory layout."""
    return np.asarray(a.T, order="C").T


@given(st.data(), st.sampled_from(WHOLE), st.sampled_from(ARITHMETIC + DIVISIONS + COMPARISONS),
       st.booleans())
def test_operators_equal_numpys(data, other, f, swapped):
    """NumPy and PyTorch promote integers alike, and overflow wraps."""
    a, b = data.draw(arrays()), data.draw(arrays(other, SHAPES))
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        b = b.ravel()[:1].reshape(()) if b.size else np.ones((), other)
    a, b = (b, a) if swapped else (a, b)
    b = np.where(b == 0, b.dtype.type(1), b) if f in DIVISIONS else b
    kind = PAIRS["int16", other]
    wide = [x.astype(kind) for x in (a, b)]
    if not a.ndim or not b.ndim:  # 0-dim tensors do not promote tensors with axes
        kind = flow.result_type(flow.from_numpy(a), flow.from_numpy(b)).name
        wide = [x.astype(kind) for x in (a, b)]
        if f in COMPARISONS:
            wide = [x.astype("int64") for x in (a, b)]
        elif f in DIVISIONS and not wide[1].all():
            return
    with np.errstate(all="ignore"):
        want = f(*wide)
    assert_equal(f(flow.from_numpy(change_layout(a)), flow.from_numpy(b)), want)


@given(arrays(), st.sampled_from(["neg", "abs", "sign", "square", "relu", "bitwise_not", "clone", "floor"]))
def test_functions_equal_numpys(a, name):
    want = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
            "relu": lambda a: np.maximum(a, 0),
            "bitwise_not": np.invert, "clone": np.copy, "floor": np.copy}[name]
    with np.errstate(all="ignore"):
        assert_equal(getattr(flow, name, flow.clone)(flow.from_numpy(change_layout(a))),
                     want(a).astype("int16"))


@given(arrays(), st.integers(0, 20))
def test_shifts(a, n):
    b = np.full(a.shape, n, np.int16)
    assert_equal(flow.from_numpy(a) << flow.from_numpy(b), a << b)
    assert_equal(flow.from_numpy(a) >> n, a >> np.int16(n))


@given(arrays(shape=st.sampled_from([(4,), (2, 3), (70, 3), (1, 300)])), st.sampled_from([None, 0, -1]))
def test_reductions_equal_numpys(a, dim):
    x = flow.from_numpy(a)
    along = () if dim is None else (dim,)
    assert_equal(x.sum(*along), a.sum(dim, dtype=np.int64))
    assert_equal(x.sum(*along, dtype=flow.int16), a.sum(dim, dtype=np.int16))
    assert_equal(x.amax(*along), a.max(dim))
    assert_equal(x.amin(*along), a.min(dim))
    assert_equal(x.any(*along), a.any(dim))
    assert_equal(x.argmax(*along) if dim is not None else x.argmax(), a.argmax(dim))
    if dim is not None:
        assert_equal(x.cumsum(dim), a.cumsum(dim, dtype=np.int64))
        assert_equal(x.sort(dim)[0], np.sort(a, dim))
        assert_equal(x.max(dim)[0], a.max(dim))
    assert_equal(flow.unique(x), np.unique(a))
    assert_equal(flow.maximum(x, -x), np.maximum(a, -a))


@given(st.data(), st.sampled_from(["int8", "uint8", "int16"]))
def test_products_wrap(data, kind):
    a, b = data.draw(arrays(kind, (3, 9))), data.draw(arrays(kind, (9, 4)))
    a[0], b[:, 0] = np.iinfo(kind).max, np.iinfo(kind).max            # their sum overflows int32 or int16
    for x, y in ((a, b), (a[0], b[:, 0]), (a[None], b)):
        assert_equal(flow.from_numpy(x) @ flow.from_numpy(y), x @ y)


@given(st.data())
def test_functions_that_only_move_elements(data):
    a, b = data.draw(arrays(shape=(4, 3))), data.draw(arrays(shape=(4, 3)))
    mask, rows = data.draw(arrays(bool, (4, 3))), data.draw(st.lists(st.integers(-4, 3), max_size=5))
    x, y = flow.from_numpy(a), flow.from_numpy(change_layout(b))
    assert_equal(flow.cat([x, y], 1), np.concatenate([a, b], 1))
    assert_equal(flow.stack([x, y]), np.stack([a, b]))
    assert_equal(flow.where(flow.from_numpy(mask), x, y), np.where(mask, a, b))
    assert_equal(x[1:, ::2].t(), a[1:, ::2].T)
    assert_equal(x[rows], a[np.array(rows, int)])
    assert_equal(x[flow.from_numpy(mask)], a[mask])
    assert_equal(x.expand(2, 4, 3).contiguous(), np.broadcast_to(a, (2, 4, 3)))
    assert_equal(flow.nn.functional.pad(x, (1, 2)), np.pad(a, ((0, 0), (1, 2))))
    assert_equal(x.gather(1, flow.from_numpy(np.argsort(b, 1))), np.take_along_axis(a, np.argsort(b, 1), 1))
    x[flow.from_numpy(mask)] = -7  # writes through to the array, whose memory x shares
    assert (a[mask] == -7).all()
    x[0], x[1:, 1] = y[1], 300
    np.testing.assert_array_equal(a[0], b[1])
    assert (a[1:, 1] == 300).all()


@given(arrays("int64", (9,)), st.sampled_from(WHOLE))
def test_integers_wrap_in_conversions(a, kind):
    narrow = flow.from_numpy(a).to(flow.int16)
    assert_equal(narrow, a.astype(np.int16))
    assert_equal(narrow.to(getattr(flow, kind)), a.astype(np.int16).astype(kind))
    assert_equal(flow.from_numpy(a.astype(kind)).short(), a.astype(kind).astype(np.int16))


@given(arrays())
def test_every_int16_survives_float32(a):
    for kind in (flow.float32, flow.float64, flow.int32):
        assert_equal(flow.from_numpy(change_layout(a)).to(kind).short(), a)


@given(arrays(), st.sampled_from(["float16", "bfloat16", "float32", "float64"]))
def test_with_floats_it_is_a_float(a, kind):
    y = flow.from_numpy(a) + flow.ones(1, dtype=getattr(flow, kind))
    assert (y.dtype.name == kind
            and (flow.from_numpy(a) / 2).dtype is (flow.from_numpy(a) * 0.5).dtype is flow.float32)
    if kind != "bfloat16" and a.ndim:
        with np.errstate(all="ignore"):
            assert_equal(y, a.astype(kind) + np.ones(1, kind))


@given(arrays())
def test_python_protocols(tmp_path_factory, a):
    x = flow.from_numpy(a)
    assert_equal(flow.tensor(a.tolist(), dtype=flow.int16).reshape(a.shape), a)
    assert (x.tolist() == a.tolist() and np.shares_memory(x.numpy(), a) == bool(a.size)
            and x.element_size() == 2)
    assert_equal(pickle.loads(pickle.dumps(x)), a)
    assert_equal(flow.from_dlpack(x), a)
    assert_equal(flow.from_dlpack(a), a)
    np.testing.assert_array_equal(np.from_dlpack(x), a)
    path = tmp_path_factory.mktemp("int16")
    flow.save({"x": x, "kind": x.dtype}, path / "state")
    back = flow.load(path / "state")
    assert_equal(back["x"], a)
    assert back["kind"] is flow.int16


class Steps(flow.nn.Graph):
    def build(self, x, y):
        z = flow.where(x > y, x * y + 3, x - (y & 255)) ^ 5
        return flow.cat([z, x]), z.sum(), z.to(flow.int8), (z << 2).to(flow.float32)


def test_a_graph_computes_the_same():
    rng, graph = np.random.default_rng(0), Steps()
    for _ in range(3):
        x, y = (flow.from_numpy(rng.integers(-2 ** 15, 2 ** 15, (5, 7)).astype(np.int16)) for _ in range(2))
        for got, want in zip(graph(x, y), Steps.build(None, x, y), strict=True):
            assert_equal(got, want.numpy())


def test_creation():
    for x, want in ((flow.zeros(2, 3, dtype=flow.int16), np.zeros((2, 3))),
                    (flow.ones(2, dtype="int16"), np.ones(2)),
                    (flow.full((3,), -7, dtype=flow.short), np.full(3, -7)),
                    (flow.eye(2, dtype=flow.int16), np.eye(2)),
                    (flow.arange(5, dtype=flow.int16), np.arange(5)),
                    (flow.arange(-9, 9, 4, dtype=flow.int16), np.arange(-9, 9, 4)),
                    (flow.ShortTensor([3, 4]), [3, 4]), (flow.tensor(9, dtype=np.int16), 9),
                    (flow.linspace(0, 8, 5, dtype=flow.int16), [0, 2, 4, 6, 8]),
                    (flow.zeros_like(flow.ones(2), dtype=flow.int16), [0, 0])):
        assert_equal(x, np.array(want, np.int16))
    assert repr(flow.tensor([1, -2], dtype=flow.int16)) == "tensor([ 1, -2], dtype=flowedu.int16)"
    drawn = flow.randint(-300, 300, (200,), dtype=flow.int16)
    assert drawn.dtype is flow.int16 and drawn.min().item() >= -300 and drawn.max().item() < 300
    assert (flow.iinfo(flow.int16).max == 2 ** 15 - 1 and flow.int16.is_signed
            and not flow.int16.is_floating_point)


@pytest.mark.parametrize("number", [2 ** 15, -2 ** 15 - 1, float("nan"), 1e9])
def test_out_of_range_numbers_are_refused(number):
    for make in (lambda: flow.tensor([number], dtype=flow.int16),
                 lambda: flow.full((2,), number, dtype=flow.int16)):
        with pytest.raises(FlowError, match="int16"):
            make()


@pytest.mark.parametrize("call", [lambda x: flow.ops.REGISTRY["softmax"](x, axis=1), lambda x: x.mean(),
                                  lambda x: flow.nn.Linear(3, 2)(x)])
def test_functions_of_real_numbers_name_the_accepted_dtypes(call):
    with pytest.raises(DTypeError) as e:
        call(flow.ones(2, 3, dtype=flow.int16))
    assert "float" in e.value.expected and "float" in e.value.fix and "int16" in str(e.value)


def test_int16_has_no_gradient_and_is_not_an_index():
    x = flow.ones(3, dtype=flow.int16)
    with pytest.raises(GradientError):
        x.requires_grad_()
    with pytest.raises(FlowError, match="int16"):
        flow.ones(4)[x]
    assert not (x * 2).requires_grad
