"""flow.array_api compared with NumPy, which follows the same standard, and its methods of tensors."""
import inspect
import itertools
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError, AxisError, ShapeError

xp = flow.array_api
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")
INTS, FLOATS = DTYPES[1:6], DTYPES[6:]
NAN, INF = float("nan"), float("inf")
needs_numpy2 = pytest.mark.skipif(not hasattr(np, "cumulative_sum"),
                                  reason="needs NumPy 2.1, which follows the standard")

# Arrays of the calls below, and calls that give the same results in both namespaces.
ARRAYS = {
    "a": [[1.5, -2.0, 0.0], [4.0, 0.25, -1.0]], "b": [[2.0], [-0.5]], "v": [3.0, 1.0, 2.0], "s": 2.5,
    "i": [[3, 1, 2], [2, 2, 1]], "j": [2, 0, 1], "m": [[True, False, True], [False, False, True]],
    "q": [[4.0, 1.0], [1.0, 3.0]], "w": [[[1.0, 2.0], [3.0, 5.0]], [[2.0, 0.0], [1.0, 1.0]]],
    "n": [NAN, 1.0, -INF, -0.0], "d": [2.0, 1.0, 2.0, 3.0, 1.0], "e": [],
}
CALLS = """
    astype(i, xp.float32)|astype(a, xp.int32)|arange(3)|arange(1, 8, 3)|arange(5, 1)|arange(5, 1, -2)|arange(0.0, 1.0, 0.25)
    linspace(0.0, 1.0, 5)|linspace(0.0, 1.0, 4, endpoint=False)|linspace(2.0, 3.0, 1)|linspace(1.0, 2.0, 0)
    eye(3)|eye(2, 4, k=1)|eye(3, 2, k=-1, dtype=xp.int32)|eye(2, k=5)
    eye(2, 3, k=-9)|tril(a, k=-9)|triu(a, k=9)|full((2, 3), 7)|full((), 1.5)|full(2, True)|zeros((2, 0))|ones(3)
    zeros_like(i)|ones_like(a, dtype=xp.int64)|full_like(a, 2)|meshgrid(v, v[:2])[0]
    meshgrid(v, v[:2], indexing="ij")[1]
    tril(a, k=1)|triu(w, k=-1)|asarray([1, 2])|asarray([[1.0], [2.0]])|asarray(3)|asarray(a, dtype=xp.float32)
    add(a, b)|subtract(a, 1.5)|multiply(2, a)|divide(a, b)|pow(a, 2.0)|remainder(a, v)|floor_divide(a, b)|maximum(a, 0.5)
    minimum(i, 2)|atan2(a, b)|hypot(a, 2.0)|copysign(1.0, a)|logaddexp(a, b)|nextafter(a, b)|equal(a, 0.0)|less(1, i)
    logical_and(m, True)|bitwise_and(i, 1)|bitwise_left_shift(i, 2)|bitwise_invert(i)|greater_equal(a, b)|not_equal(i, j)
    clip(a, -1.0, 1.0)|clip(a, max=0.5)|clip(a)|clip(a, min=b)|sign(n)|sign(i)|signbit(n)|where(m, a, 0.0)|where(m, i, i)
    round(a)|trunc(i)|ceil(a)|abs(i)|square(i)|reciprocal(v)|isnan(n)|isinf(n)|isfinite(i)|real(a)|imag(a)|conj(a)
    sum(a)|sum(i, axis=1)|sum(m)|sum(a, axis=(0, 1), keepdims=True)|sum(a, axis=())|prod(i, axis=0)|max(a, axis=-1)
    min(a, keepdims=True)|mean(a, axis=0)|var(a, correction=1.0)|var(a)|std(a, axis=1, keepdims=True)|std(w, axis=(0, 2))
    all(m, axis=1)|any(m)|any(m, axis=())|argmax(a)|argmin(a, axis=1, keepdims=True)|argmax(a, keepdims=True)
    count_nonzero(a)|count_nonzero(m, axis=0)|count_nonzero(i, axis=(0, 1), keepdims=True)
    cumulative_sum(v)|cumulative_sum(a, axis=1, include_initial=True)|cumulative_prod(i, axis=0, include_initial=True)
    cumulative_sum(a, axis=-2, include_initial=True, dtype=xp.float32)|diff(a)|diff(v, n=2)|diff(a, axis=0)
    diff(v, prepend=j, append=v)|take(v, j)|take(a, j, axis=1)|take(a, xp.asarray([-1, 0]), axis=0)|nonzero(m)[1]
    take_along_axis(a, xp.asarray([[2], [-1]]), axis=1)|sort(a)|argsort(a, axis=1)
    isin(i, xp.asarray([1, 3]))|isin(i, 2, invert=True)|isin(2, j)|searchsorted(xp.sort(v), a)|searchsorted(j, 1, sorter=j)
    searchsorted(xp.sort(v), v, side="right")|unique_values(d)|unique_counts(d)[1]|unique_inverse(a)[1]|unique_all(d)[1]
    unique_all(d)[2]|unique_all(s)[3]|unique_inverse(s)[1]|broadcast_arrays(a, b)[1]|broadcast_to(b, (2, 3))|concat([a, a])
    concat([a, b], axis=1)|concat([a, v], axis=None)|concat([i, a], axis=0)|expand_dims(a, axis=1)
    expand_dims(a, axis=(0, -1))|expand_dims(s, axis=())|flip(a)|flip(a, axis=1)
    flip(w, axis=(0, -1))|moveaxis(w, 0, 2)|moveaxis(w, (0, 1), (2, 0))
    permute_dims(w, (2, 0, 1))|repeat(a, 2)|repeat(a, j, axis=1)|reshape(a, (3, 2))|reshape(a, (-1,), copy=True)
    roll(a, 1)|roll(a, (1, 2), axis=(0, 1))|squeeze(xp.expand_dims(a, axis=0), axis=0)|squeeze(b, axis=(1,))
    stack([a, a], axis=1)|stack([i, a])|tile(a, (2,))|tile(v, (2, 1, 2))|unstack(a, axis=1)[2]|matmul(a, v)|matmul(w, q)
    matrix_transpose(w)|tensordot(a, a, axes=([0], [0]))|tensordot(w, w, axes=1)|vecdot(a, v)|vecdot(a, b, axis=0)
    vecdot(i, i)|all(i)|any(s)|linalg.cholesky(q)|linalg.cholesky(q, upper=True)
    linalg.cross(v, a)|linalg.det(w)|linalg.diagonal(w, offset=1)
    linalg.eigh(q)[0]|linalg.eigvalsh(q)|linalg.inv(w)|linalg.matrix_norm(w)|linalg.matrix_norm(a, ord=1, keepdims=True)
    linalg.matrix_power(w, -2)|linalg.outer(v, v)|linalg.solve(w, q)|linalg.solve(q, v[0:2])|linalg.solve(w, v[0:2])
    linalg.svdvals(a)|linalg.slogdet(w)[1]|linalg.trace(w)|linalg.trace(i, offset=1)|linalg.vector_norm(a)
    linalg.vector_norm(a, axis=1, ord=1, keepdims=True)|linalg.vector_norm(w, axis=(0, 1))|linalg.vector_norm(s)
    sum(e)|prod(e)|concat([e, v])|sort(e)|unique_all(e)[1]|expand_dims(e, axis=0)|cumulative_sum(e, include_initial=True)
"""
CALLS = [call.strip() for line in CALLS.strip().splitlines() for call in line.split("|")]


def evaluate(call: str, space):
    values = {name: space.asarray(np.asarray(x)) for name, x in ARRAYS.items()}
    return eval(f"xp.{call}", {"xp": space, **values})


def test_sorting_keeps_equal_elements_in_order():
    x = xp.asarray([2.0, 1.0, 2.0, NAN, 1.0])
    assert xp.argsort(x).numpy().tolist() == [1, 4, 0, 2, 3]
    order = xp.argsort(x[:3], descending=True)
    assert (order.numpy().tolist() == [0, 2, 1] and xp.sort(x[:3],
                                                            descending=True).numpy().tolist() == [2.0,
                                                                                                  2.0, 1.0])


@needs_numpy2
@pytest.mark.parametrize("call", CALLS)
def test_results_match_numpy(call):
    """Values, shapes, and dtypes; the default floating dtype is float64 for the test, as in NumPy."""
    flow.set_default_dtype(flow.float64)
    try:
        result = evaluate(call, xp)
    finally:
        flow.set_default_dtype(flow.float32)
    expected = np.asarray(evaluate(call, np))
    assert tuple(result.shape) == expected.shape
    if expected.dtype != np.uint64:
        assert result.dtype.name == expected.dtype.name
    # The functions round a few times at most, on values below 100. 1e-12 is 4,500 ulp of 1.0.
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
    divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or
    logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract""".split()


def kinds_of(name: str) -> list[tuple[str, ...]]:
    if name.startswith("bitwise"):
        return [INTS]
    if name.startswith("logical"):
        return [("bool",)]
    return ([FLOATS] if name in ("atan2", "copysign", "divide", "hypot", "logaddexp", "nextafter")
            else [INTS, FLOATS])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((), ()), ((), (2,)), ((2,), ()), ((2,), (1, 2))])
def test_promotion_does_not_depend_on_the_number_of_axes(name, shapes):
    for kinds in kinds_of(name):
        for one, two in itertools.product(kinds, repeat=2):
            x1, x2 = xp.ones(shapes[0], dtype=getattr(xp, one)), xp.ones(shapes[1], dtype=getattr(xp, two))
            kind = np.result_type(np.dtype(one), np.dtype(two)).name
            compares = name.startswith(("equal", "not_equal", "greater", "less", "logical"))
            result = getattr(xp, name)(x1, x2)
            assert result.dtype.name == ("bool" if compares else kind), (one, two)
            assert xp.result_type(x1, x2).name == kind and tuple(result.shape) == np.broadcast_shapes(*shapes)


@pytest.mark.parametrize("name", BINARY)
def test_numbers_take_the_dtype_of_the_array(name):
    for kind in itertools.chain(*kinds_of(name)):
        x = xp.ones((2,), dtype=getattr(xp, kind))
        number = {"b": True, "i": 1, "u": 1, "f": 1.0}[np.dtype(kind).kind]
        f = getattr(xp, name)
        whole = f(x, x)
        for result in (f(x, number), f(number, x)):
            assert result.dtype is whole.dtype and result.numpy().tolist() == whole.numpy().tolist()


def test_info_describes_the_namespace():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True,
                                   "max dimensions": 8}
    assert info.default_device() in info.devices() and xp.ones(1).device == info.default_device()
    assert set(info.dtypes()) == set(DTYPES) and info.dtypes(kind="complex floating") == {}
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric",
             ("bool", "integral"))
    for kind in kinds:
        chosen = info.dtypes(kind=kind)
        assert {n for n in DTYPES if xp.isdtype(getattr(xp, n), kind)} == set(chosen)
        assert all(getattr(xp, n) is d for n, d in chosen.items())
    flow.set_default_dtype(flow.float64)
    try:
        assert info.default_dtypes()["real floating"] is xp.asarray(1.0).dtype is flow.float64
    finally:
        flow.set_default_dtype(flow.float32)
    assert info.default_dtypes() == {"real floating": xp.float32, "integral": xp.int64, "indexing": xp.int64}
    assert xp.asarray(1).dtype is xp.int64 and xp.argmax(xp.ones(2)).dtype is xp.int64
    with pytest.raises(ArgumentError, match="unknown kind"):
        xp.isdtype(xp.int8, "whole")


@pytest.mark.parametrize("kind", DTYPES[1:])
def test_limits_name_their_dtype(kind):
    dtype = getattr(xp, kind)
    limits, expected = (xp.finfo, np.finfo) if kind in FLOATS else (xp.iinfo, np.iinfo)
    for what in (dtype, xp.zeros((), dtype=dtype)):
        info = limits(what)
        assert info.dtype is dtype and (info.bits, info.min, info.max) == (
            expected(kind).bits, expected(kind).min, expected(kind).max)


def test_can_cast_follows_promotion():
    for one, two in itertools.product(DTYPES, repeat=2):
        if np.dtype(one).kind == np.dtype(two).kind:
            assert xp.can_cast(getattr(xp, one), getattr(xp, two)) == np.can_cast(one, two)
    assert xp.can_cast(xp.ones(1, dtype=xp.int8), xp.int16) and not xp.can_cast(xp.float32, xp.int64)


# ---- methods of tensors in the standard
def test_tensors_return_their_namespace():
    x = flow.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2023.12")
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ArgumentError, match="unknown version"):
        x.__array_namespace__(api_version="2019.01")
    assert complex(flow.tensor(1.5)) == 1.5 + 0j


def test_to_device():
    x = flow.ones(2)
    assert x.to_device(x.device).numpy().tolist() == [1.0, 1.0] and x.to_device("cpu").device == x.device
    with pytest.raises(ArgumentError, match="current stream"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize("take", [flow.from_dlpack, xp.from_dlpack])
def test_from_dlpack_copies_on_request(take):
    source = np.arange(3.0)
    for copy, shared in ((None, True), (False, True), (True, False)):
        for device in (None, "cpu", flow.device("cpu")):
            x = take(source, copy=copy, device=device)
            assert np.shares_memory(x.numpy(), source) == shared and x.numpy().tolist() == [0.0, 1.0, 2.0]


def test_asarray_copies_on_request():
    x, a = flow.ones(3), np.ones(3, np.float32)
    for source in (x, a):
        for copy, shared in ((None, True), (False, True), (True, False)):
            assert np.shares_memory(xp.asarray(source, copy=copy).numpy(), np.asarray(source)) == shared
        with pytest.raises(ValueError):
            xp.asarray(source, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError):
        xp.asarray([1.0], copy=False)
    assert xp.asarray(memoryview(b"ab")).numpy().tolist() == [97, 98]


@pytest.mark.parametrize("call, error", [
    (lambda x: xp.squeeze(x, 0), ShapeError), (lambda x: xp.nonzero(xp.asarray(1)), AxisError),
    (lambda x: xp.cumulative_sum(x), ShapeError), (lambda x: xp.take(x, xp.asarray([0])), ShapeError),
    (lambda x: xp.broadcast_shapes((2,), (3,)), ValueError), (lambda x: xp.expand_dims(x, axis=5),
                                                              IndexError),
    (lambda x: xp.expand_dims(x, axis=(0, 0)), ValueError), (lambda x: xp.reshape(x.mT, (6,), copy=False),
                                                             ValueError)])
def test_wrong_calls_are_refused(call, error):
    with pytest.raises(error):
        call(xp.ones((2, 3)))


def test_functions_have_gradients_and_run_in_graphs():
    def loss(x):
        y = xp.linalg.solve(xp.matmul(x, x.mT) + xp.eye(2), xp.sum(x, axis=1))
        return xp.vecdot(y, xp.take(y, xp.asarray([1, 0]))) + xp.std(xp.concat([x, x], axis=0)) * 2

    class G(nn.Graph):
        def build(self, x):
            return loss(x)

    x = flow.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], requires_grad=True)
    loss(x).backward()
    assert flow.isfinite(x.grad).all() and (x.grad != 0).all()
    # Both run the same kernels on the same values. Sums of six float32 values below 20 may be ordered
    # differently, and 6 * 20 * 2**-24 < 1e-5.
    np.testing.assert_allclose(G()(x.detach()).numpy(), loss(x).detach().numpy(), atol=1e-5)


def test_diagonals_outside_the_matrix_are_empty():
    for k in (2 ** 40, -2 ** 40, 2 ** 70, -2 ** 70):
        x = xp.ones((2, 3))
        assert (not xp.any(xp.eye(2, 3, k=k))
                and bool(xp.any(xp.tril(x, k=k))) == (k > 0) == (not xp.any(xp.triu(x, k=k))))


def test_the_files_of_the_namespace_have_at_most_150_lines():
    """They only rename and reorder arguments. Computations belong in the functions that they call."""
    files = [*Path(inspect.getfile(xp)).parent.glob("*.py")]
    assert len(files) == 7
    assert max(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 150
