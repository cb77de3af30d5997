"""Law: every kernel equals its op's reference, for any memory layout, dtype, and size."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu._kernels import TABLE
from flowedu.core.eager.dispatch import get_num_threads
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec

from .calls import (
    assert_equal_up_to_rounding,
    attributes,
    call_inputs,
    cases,
    few,
    label,
    reference,
    run_eagerly,
    thin,
)
from .draws import (
    EXACT,
    KINDS,
    assert_equal_or_rounded,
    meaning,
    most_terms,
    supported,
    supported_call_inputs,
)

CALLS = cases(lambda op: op.ref is not None and not op.mutates)


@pytest.mark.parametrize("case", CALLS, ids=label)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_kernel_equals_reference(case, data, kind):
    """For every dtype that has a kernel, with ties, NaN, infinity, zeros, and extreme values."""
    op, example = case
    arrays, attrs = data.draw(supported_call_inputs(op, example, kind))
    before = [a.copy() for a in arrays]
    for got, want in zip(run_eagerly(op, arrays, attrs), meaning(op, arrays, attrs), strict=True):
        assert_equal_or_rounded(got, want, op.name in EXACT, most_terms(op, arrays))
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a, b)          # inputs are not written


def test_every_dtype_of_every_kernel_is_drawn():
    """If TABLE has a kernel for a dtype, some call of the registry runs it."""
    run = {(op.cpu, as_dtype(t).code) for op, e in CALLS for t in supported(op, e)}
    run |= {("cast", c) for c in range(9)} | {("fill", c) for c in range(9)}                   # test_cast.py
    known = {k for k, _ in TABLE.items()}
    # bfloat16: test_cast.py
    moved = {(name, 8) for name in ("copy", "concat", "slice_grad", "elementwise")}
    # tests/amp
    moved |= {(name, 8) for name in ("gather", "gather_nd", "scatter_nd_update", "dim_gather", "matmul")}
    sources = {(op.cpu, c) for op, _ in CALLS if op.random or op.name in ("range", "one_hot")
               for c in range(9)}
    # test_updates.py:
    updates = {(op.cpu, c) for op in REGISTRY.values() if op.mutates for c in range(9)}
    assert known - run - moved - sources - updates == set()


SOURCES = [(op, e) for op, e in CALLS if op.random and not op.inputs]


@pytest.mark.parametrize("case", SOURCES, ids=label)
def test_random_numbers_of_any_length_equal_the_reference(case):
    """The length is an attribute; kernels draw in blocks of 128 and 256."""
    op, example = case
    long = None
    for n in (4097, 0, 1, 2, 127, 128, 129, 255, 256, 257, 512, 513):
        attrs = attributes(op, {**example, "shape": (n,)})
        got, = run_eagerly(op, [], attrs)
        want, = reference(op, [], attrs)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        long = got if long is None else long
        np.testing.assert_array_equal(got, long[:n])            # a number depends only on its position


@pytest.mark.parametrize("mask", [np.array([0, 1, -1, 127, -128, 2], np.int8),
                                  np.array([0, 1, 255, 128, 2, 0], np.uint8),
                                  np.array([True, False, True, True, False, False])],
                         ids=lambda m: m.dtype.name)
@pytest.mark.parametrize("n", [1, 33, 700])
def test_where_treats_nonzero_as_true(mask, n):
    mask = np.resize(mask, (3, n))
    x, y = np.arange(3.0 * n).reshape(3, n), -np.ones(n)
    np.testing.assert_array_equal(run_eagerly(REGISTRY["where"], (mask, x, y), ())[0],
                                  np.where(mask != 0, x, y))


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
@few
@given(data=st.data())
def test_infer_matches_shape_and_dtype_of_the_reference(case, data):
    op, example = case
    arrays, attrs = data.draw(call_inputs(op, example))
    specs = op.infer([Spec(a.shape, as_dtype(a.dtype)) for a in arrays], attrs)
    for spec, y in zip(specs, reference(op, arrays, attrs), strict=True):
        assert spec.shape == y.shape
        assert spec.dtype.numpy == y.dtype


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
@few
@given(data=st.data())
def test_threads_do_not_change_values(case, data):
    """Splitting work over threads changes results at most by rounding, because sums may be reordered."""
    op, example = case
    arrays, attrs = data.draw(call_inputs(op, example, dtypes=(np.float32,)))
    one = run_on(op, arrays, attrs, 1)
    for nt in (2, 3):
        for a, b in zip(run_on(op, arrays, attrs, nt), one):
            assert_equal_up_to_rounding(a, b, np.float32, scale=10.0)
    assert get_num_threads() >= 1


def run_on(op, arrays, attrs, nt):
    """Run the kernel with nt threads, even for small calls."""
    from flowedu.core.eager.dispatch import get_num_threads, set_num_threads
    from flowedu.core.graph.ir import Graph

    from .graphs import run_graph
    old = get_num_threads()
    set_num_threads(nt)
    try:
        g = Graph("law")
        values = [g.input(f"x{i}", Spec(a.shape, as_dtype(a.dtype))) for i, a in enumerate(arrays)]
        with g.building():
            out = op.call(tuple(values), attrs)
        g.outputs = list(out) if isinstance(out, tuple) else [out]
        return run_graph(g, arrays, passes=False, always_parallel=True)
    finally:
        set_num_threads(old)
