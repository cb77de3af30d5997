"""Law: ops whose NumPy reference is their own kernel, and would be compared with themselves, equal these
independent definitions, written element by element.
"""
import functools
import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flowedu.ops import REGISTRY

from .calls import cases, label, run_eagerly
from .draws import FACTORS, KINDS, assert_equal_or_rounded, supported_call_inputs


def rows_of(x):
    """Yield index and value of each matrix of a batch."""
    return ((i, x[i].astype(np.longdouble)) for i in np.ndindex(x.shape[:-2]))


@functools.cache
def permutations(n):
    """Return all permutations of n, and their signs."""
    every = list(itertools.permutations(range(n)))
    return (np.array(every), [(-1) ** sum(p[i] > p[j] for i in range(n) for j in range(i + 1, n))
                              for p in every])


def determinant(a):
    """Compute by Leibniz' formula, the sum over all permutations."""
    every, signs = permutations(len(a))
    return (np.prod(a[np.arange(len(a)), every], axis=1) * signs).sum()


def cramer(a, b):
    """Solve a @ y = b by Cramer's rule."""
    y, d = np.empty(b.shape, np.longdouble), determinant(a)
    for i, k in np.ndindex(b.shape):
        swapped = a.copy()
        swapped[:, i] = b[:, k]
        y[i, k] = determinant(swapped) / d
    return y


def det(x):
    y = np.empty(x.shape[:-2], x.dtype)
    for i, a in rows_of(x):
        y[i] = determinant(a)
    return y


def lu(x):
    factors, p = x.copy(), np.zeros((*x.shape[:-1], x.shape[-2]), x.dtype)
    for i, a in rows_of(x):
        a, order = a.copy(), list(range(len(a)))
        for k in range(min(a.shape)):
            best = k + int(np.argmax(np.abs(a[k:, k])))
            a[[k, best]] = a[[best, k]]
            order[k], order[best] = order[best], order[k]
            for r in range(k + 1, len(a)):
                if a[k, k] != 0:
                    a[r, k] /= a[k, k]
                a[r, k + 1:] -= a[r, k] * a[k, k + 1:]
        factors[i] = a
        for column, row in enumerate(order):
            p[i][row, column] = 1
    return factors, p


def slogdet(x):
    y = det(x.astype(np.longdouble))
    return np.sign(y), np.log(np.abs(y))


def leading_minor(x):
    y = np.zeros(x.shape[:-2], np.int32)
    for i, a in rows_of(x):
        a = (a + a.T) / 2
        minors = [determinant(a[:k, :k]) for k in range(1, len(a) + 1)]
        assume(all(abs(m) > 1e-6 for m in minors))                   # at 0, rounding decides
        y[i] = next((k for k, m in enumerate(minors, 1) if m <= 0), 0)
    return y


def cholesky(x, checked):
    y = np.zeros_like(x)
    for at, a in rows_of(x):
        a, low = (a + a.T) / 2, np.zeros(a.shape, np.longdouble)
        for i, j in np.ndindex(a.shape):
            if j <= i:
                rest = a[i, j] - low[i, :j] @ low[j, :j]
                low[i, j] = np.sqrt(rest) if i == j else rest / low[j, j]
        y[at] = low
    return y


def matrix_exp(x):
    """Sum the Fourier series directly."""
    y = np.empty_like(x)
    for i, a in rows_of(x):
        term = total = np.eye(len(a), dtype=np.longdouble)
        for k in range(1, 120):
            term = term @ a / k
            total = total + term
        y[i] = total
    return y


def inverse(x):
    y = np.empty_like(x)
    for i, a in rows_of(x):
        y[i] = cramer(a, np.eye(len(a), dtype=np.longdouble))
    return y


def solve(a, b):
    y = np.empty_like(b)
    for i, m in rows_of(a):
        y[i] = cramer(m, b[i].astype(np.longdouble))
    return y


def searchsorted(rows, values, right):
    y = np.empty(values.shape, np.int64)
    for i in np.ndindex(values.shape):
        row = rows if rows.ndim == 1 else rows[i[:-1]]
        y[i] = sum(bool(r <= values[i] if right else r < values[i]) for r in row)
    return y


def waves(n):
    """Return cos and sin of the angles 2 pi k j / n, by frequency k and position j: (k, j)."""
    turns = np.outer(np.arange(n // 2 + 1), np.arange(n)) % n * 2 * np.longdouble(np.pi) / n
    return np.cos(turns), np.sin(turns)


def images(n):
    """Return the multiplicity of each frequency of the first half: 2 if it is paired with n - k, else 1."""
    return np.array([1 + (k != -k % n) for k in range(n // 2 + 1)])


def rfft(x, scale, twice):
    n = x.shape[-1]
    cos, sin = waves(n)
    y = np.stack([x @ cos.T, -(x @ sin.T)], -1)
    return y * scale * (images(n)[:, None] if twice else 1)


def irfft(x, n, scale, twice):
    cos, sin = waves(n)
    x = x * (images(n)[:, None] if twice else 1)
    return (x[..., 0] @ cos - x[..., 1] @ sin) * scale


def gather_part(params, indices, axis, first, size):
    """Gather from a table of `size` rows that holds params from row `first` on, and zeros elsewhere."""
    y = np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    for at in np.ndindex(y.shape):
        row = indices[at[axis:axis + indices.ndim]] - first
        if 0 <= row < params.shape[axis]:
            y[at] = params[at[:axis] + (row,) + at[axis + indices.ndim:]]
    return y


def gather_part_grad(dy, indices, axis, first, rows, size):
    y = np.zeros(dy.shape[:axis] + (rows,) + dy.shape[axis + indices.ndim:], dy.dtype)
    for at in np.ndindex(dy.shape):
        row = indices[at[axis:axis + indices.ndim]] - first
        if 0 <= row < rows:
            y[at[:axis] + (row,) + at[axis + indices.ndim:]] += dy[at]
    return y


def dim_gather_part(x, index, axis, first, size):
    y = np.zeros(index.shape, x.dtype)
    for at in np.ndindex(index.shape):
        row = index[at] - first
        if 0 <= row < x.shape[axis]:
            y[at] = x[at[:axis] + (row,) + at[axis + 1:]]
    return y


def dim_gather_part_grad(dy, index, axis, first, rows, size):
    y = np.zeros(dy.shape[:axis] + (rows,) + dy.shape[axis + 1:], dy.dtype)
    for at in np.ndindex(dy.shape):
        row = index[at] - first
        if 0 <= row < rows:
            y[at[:axis] + (row,) + at[axis + 1:]] += dy[at]
    return y


def slice_part(x, start, stop, step, first):
    y = np.zeros([len(range(a, b, s)) for a, b, s in zip(start, stop, step)], x.dtype)
    for at in np.ndindex(y.shape):
        place = [a + i * s - f for i, a, s, f in zip(at, start, step, first)]
        if all(0 <= p < n for p, n in zip(place, x.shape)):
            y[at] = x[tuple(place)]
    return y


def extreme_place(x, axis, smallest):
    """For each prefix, return the index of the last largest (smallest) element, or of the last NaN."""
    y = np.empty(x.shape, np.int64)
    for at in np.ndindex(x.shape):
        seen = [x[at[:axis] + (i,) + at[axis + 1:]] for i in range(at[axis] + 1)]
        odd = [i for i, v in enumerate(seen) if v != v]
        best = (min if smallest else max)([v for v in seen if v == v], default=None)
        y[at] = odd[-1] if odd else max(i for i, v in enumerate(seen) if v == best)
    return y


def mode_place(x):
    """Return the last index of the most frequent element; of several, the smallest, where NaN (equal to
    itself) is largest.
    """
    y = np.empty(x.shape[:-1], np.int64)
    for at in np.ndindex(y.shape):
        row = list(x[at])
        counts = [sum(equal_or_both_nan(v, w) for w in row) for v in row]
        found = [v for v, n in zip(row, counts) if n == max(counts)]
        best = min((v for v in found if v == v), default=found[0])
        y[at] = max(i for i, v in enumerate(row) if equal_or_both_nan(v, best))
    return y


def equal_or_both_nan(u, v) -> bool:
    return bool(u == v or u != u and v != v)


MEANINGS = {f.__name__: f for f in (
    det, lu, slogdet, leading_minor, cholesky, inverse, solve, matrix_exp, rfft, irfft, searchsorted,
    gather_part,
    gather_part_grad, dim_gather_part, dim_gather_part_grad, slice_part, extreme_place, mode_place)}
CALLS = cases(lambda op: op.name in MEANINGS)
LIBRARY = [op for op in REGISTRY.values() if op.ref and (op.ref.__module__ or "").startswith("flowedu.")]
# collected at import, because earlier tests may define ops


def test_every_op_without_separate_reference_is_listed():
    own = {op.name for op in LIBRARY if op.cpu is None and op.view is None and not op.random}
    assert own == set(MEANINGS) | FACTORS | {"pseudo_inverse"}  # FACTORS and pseudo_inverse: test_factors.py


@pytest.mark.parametrize("case", CALLS, ids=label)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_results_equal_the_definition(case, data, kind):
    op, example = case
    assume(op.name != "lu" or kind != "ties")                         # with equal pivots, rounding decides
    arrays, attrs = data.draw(supported_call_inputs(op, example, kind))
    results = run_eagerly(op, arrays, attrs)
    if results[0].dtype == np.float16 and op.name.endswith("_grad"):
        arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    with np.errstate(all="ignore"):
        wanted = MEANINGS[op.name](*arrays, *attrs)
    terms = 400 if {"matrix", "definite"} & {*op.domain.values()} else 16
    for got, want in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert_equal_or_rounded(got, want.astype(got.dtype), op.name == "slice_part", terms=terms)
