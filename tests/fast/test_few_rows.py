"""Products with few rows or columns: the loops that read a matrix once agree with float64, row by row."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow

DTYPES = {np.float32: 2.0 ** -24, np.float64: 2.0 ** -53}


def to_tensor(a, turned):
    """Return the same matrix, stored in column-major order if `turned`."""
    return flow.tensor(np.ascontiguousarray(a.T)).transpose(0, 1) if turned else flow.tensor(a)


@given(st.data(), st.integers(1, 9), st.integers(1, 70), st.integers(1, 70), st.booleans(), st.booleans(),
       st.booleans())
@pytest.mark.parametrize("dtype", DTYPES)
def test_few_rows_equal_float64_within_rounding(dtype, data, few, many, blocks, a_turned, b_turned, columns):
    depth = data.draw(st.sampled_from((1, 33, 64, 130, 2048, 2050, 4100)))
    r = np.random.default_rng(few * 70 + many)
    shapes = ((many * blocks, depth), (depth, few)) if columns else ((few, depth), (depth, many * blocks))
    a, b = (r.standard_normal(s).astype(dtype) for s in shapes)
    got = (to_tensor(a, a_turned) @ to_tensor(b, b_turned)).numpy()
    exact, size = (a.astype(np.float64) @ b.astype(np.float64),
                   np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(got - exact) <= (depth + 2) * DTYPES[dtype] * size + np.spacing(np.abs(exact))).all()


@given(st.integers(1, 21), st.integers(0, 70), st.integers(1, 70), st.booleans(), st.booleans(),
       st.integers(0, 2 ** 31))
@pytest.mark.parametrize("dtype", DTYPES)
def test_small_products_of_small_integers_are_exact(dtype, rows, depth, columns, a_turned, b_turned, seed):
    """Sizes around the thresholds between plain loops, vector loops, and a BLAS."""
    r = np.random.default_rng(seed)
    a, b = (r.integers(-4, 5, s).astype(dtype) for s in ((rows, depth), (depth, columns)))
    np.testing.assert_array_equal((to_tensor(a, a_turned) @ to_tensor(b, b_turned)).numpy(), a @ b)


@given(st.integers(2, 8), st.booleans(), st.sampled_from((1, 2)))
def test_a_nan_stays_in_its_row(rows, turned, threads):
    r = np.random.default_rng(rows)
    x, w = r.standard_normal((rows, 65)).astype(np.float32), r.standard_normal((65, 130)).astype(np.float32)
    clean = (flow.tensor(x) @ to_tensor(w, turned)).numpy()
    x[1, 64] = np.nan
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        got = (flow.tensor(x) @ to_tensor(w, turned)).numpy()
    finally:
        flow.set_num_threads(before)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(np.delete(got, 1, 0), np.delete(clean, 1, 0))
