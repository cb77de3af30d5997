"""Draws for kernel laws beyond calls.py: every dtype of an op's kernel, ties, NaN and infinity, and axes as
long as the blocks of kernels. Also the float64 reference result.
"""
from __future__ import annotations

import os
import zlib

import numpy as np
from hypothesis import strategies as st

from flowedu.core.eager.dispatch import prepare
from flowedu.core.ops.axes import parse
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec, row_major
from flowedu.errors import FlowError

from .calls import attributes, draw_values, input_name, reference, resized, strided, types_of

KINDS = ("plain", "ties", "edges")
TYPES = tuple(map(np.dtype, (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.int16,
                             np.bool_, np.float16)))
ROUNDING = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 4e-6, np.dtype(np.float64): 1e-12}

# Results are elements or comparisons of the inputs: exact to the last bit, for every value.
EXACT = set("""
    contiguous concat slice_grad gather gather_nd dim_gather scatter_nd_update where max min argmax argsort
    top_k maximum minimum abs neg sign relu relu_grad copysign ceil floor round trunc max_pool2d
    max_pool2d_gather extreme_place mode_place searchsorted gather_part dim_gather_part slice_part eq ne lt le
    gt ge both either differ equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor reshape transpose expand slice identity diagonal unfold as_strided distribute_hint""".split())

# NaN and infinity: the result depends on the order of the sums, or on zeros that are multiplied or skipped.
ORDINARY = {
    **dict.fromkeys(("inverse", "det", "solve", "slogdet"), "LAPACK's pivots"),
    **dict.fromkeys(("rfft", "irfft"), "infinity times 0, in some of a fast transform's sums"),
    **dict.fromkeys(("cholesky", "leading_minor", "eigh", "svd", "qr", "lu", "pseudo_inverse"),
                    "LAPACK refuses, or NaN"),
    "matrix_exp": "as many squarings as the largest number wants",
    "ctc_loss": "of log-probabilities: -inf has a test of its own", "ctc_loss_grad": "as ctc_loss",
    "resize2d_grad": "the meaning multiplies by weights of 0, the kernel leaves them out",
    **dict.fromkeys(("conv2d_last_weight_grad", "conv2d_weight_grad"),
                    "the meaning multiplies padding of 0, the kernel of channels that lie side by side "
                    "leaves it out"),
    **dict.fromkeys(("attention", "attention_grad"),
                    "hidden keys are left out, block by block; nn/test_attention_op.py"),
    "cast": "to integers it is the machine's affair: test_cast.py",
    "softmax_cross_entropy": "the first input is a distribution",
    "searchsorted": "rows must be in order, which NaN has not",
    "within": "it refuses them: test_value_checks.py",
    "digamma_series": "only called for x of 8 or more", "digamma_steps": "only called for x of 0.5 or more",
}


# LAPACK's float32 results differ from rounded float64 results: signs, vectors of close eigenvalues, equal
# pivots.
FACTORS = {"eigh", "svd", "qr", "lu"}                    # properties are tested in test_factors.py


_TYPES_OF: dict[tuple, tuple] = {}


def supported(op, example) -> tuple:
    """Return the dtypes of the drawn inputs for which this call has a kernel."""
    key = op.name, repr(example)
    if key not in _TYPES_OF:
        _TYPES_OF[key] = tuple(t for t in TYPES if _has_kernel(op, example, t))
    return _TYPES_OF[key]


def _has_kernel(op, example, dtype) -> bool:
    specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(example["shapes"], types_of(op, example, dtype))]
    attrs = attributes(op, example)
    if op.name == "relu6_grad" and dtype.kind == "u":        # y is at most 6, and 6 - y would need a sign
        return False
    try:
        prepare(op, specs, attrs, [row_major(s.shape) for s in specs])
        op.need_kernel(specs, op.infer(specs, attrs), attrs)
    except FlowError:
        return False
    return True


def tied(shape, dtype, domain, rng) -> np.ndarray:
    """Draw few distinct values, so that ties are frequent; where any value is valid, halves, whose rounding
    is a tie.
    """
    if domain == "any" and dtype.kind == "f":
        return np.asarray(rng.integers(-6, 7, shape) / 2, dtype)
    low, high = {"positive": (1, 3), "above_one": (2, 4),
                 "unit": (0, 1)}.get(domain, (0 if dtype.kind in "ub" else -2, 3))
    return rng.integers(low, high, shape).astype(dtype)


def edges(dtype, exact: bool) -> np.ndarray:
    """Draw the values at which kernels fail: NaN, infinities, both zeros; for exact ops, the smallest and
    largest numbers.
    """
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind != "f":
        i = np.iinfo(dtype)
        return np.array([i.min, i.max, i.max - 1, 0, 1, *([-1, -2] if i.min else [])], dtype)
    f = np.finfo(dtype)
    plain = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
    return np.array(plain + [f.max, -f.max, f.smallest_subnormal, -3 * f.smallest_subnormal, f.tiny] * exact,
                    dtype)


def arrays_of(op, example, dtype, rng, kind: str) -> list[np.ndarray]:
    """Draw the inputs of one call. kind: "plain", "ties", or "edges"."""
    out = []
    for i, (shape, t) in enumerate(zip(example["shapes"], types_of(op, example, dtype))):
        domain, t = op.domain.get(input_name(op, i), "any"), np.dtype(t)
        free = not domain.startswith(("index", "mask", "matrix", "definite"))
        if t.kind == "b" or kind == "ties" and free:
            # includes 0 and -1, with NumPy's result
            x = tied(shape, t, "any" if op.elementwise else domain, rng)
            x = np.sort(x, -1) if domain == "sorted" and x.ndim else x
        else:
            x = draw_values(domain, shape, t, rng, i)
        if domain == "matrix" and x.ndim > 1:        # a determinant of either sign
            x = x * rng.choice([-1, 1], (*x.shape[:-1], 1)).astype(t)
        everywhere = op.elementwise or op.name in EXACT
        if kind == "edges" and free and op.name not in ORDINARY and (everywhere or i == 0):
            some = rng.random(x.shape) < 0.3
            x = np.where(some, rng.choice(edges(t, op.name in EXACT), x.shape), x).astype(t)
        # -0.0 becomes 0.0: the sign of x // -0.0 is unspecified
        out.append(x + t.type(0) if op.name == "floordiv" else x)
    return out


@st.composite
def supported_call_inputs(draw, op, example, kind):
    """Draw (arrays, attrs): inputs of one call with a drawn size, dtype, and layout."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from(supported(op, example)))
    if draw(st.booleans()):
        picks = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 17]), min_size=8, max_size=8))
        order: dict[str, int] = {}
        example = resized(op, example, lambda c, n: picks[order.setdefault(c, len(order)) % 8])
    arrays = [strided(a, draw(st.integers(0, 3))) for a in arrays_of(op, example, dtype, rng, kind)]
    return arrays, attributes(op, example)


def most_terms(op, arrays) -> int:
    """Return an estimate of the number of summed terms: the length of the longest axis."""
    return 1 if op.elementwise else max((n for a in arrays for n in a.shape), default=1)


def meaning(op, arrays, attrs) -> tuple:
    """Compute the reference in float64 and round once."""
    as_it_is = op.random or op.name in FACTORS
    wide = arrays if as_it_is else [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    specs = op.infer([Spec(a.shape, as_dtype(a.dtype)) for a in arrays], attrs)
    with np.errstate(all="ignore"):
        return tuple(y.astype(s.dtype.numpy) for y, s in zip(reference(op, wide, attrs), specs, strict=True))


# The sanitizer build sums sequentially; other builds use one partial sum per vector lane.
ONE_BY_ONE = os.environ.get("FLOWEDU_DEBUG") == "1"


def assert_equal_or_rounded(got, want, exact: bool, terms: int = 1, what=None) -> None:
    """Assert equality, exactly or up to rounding of the dtype, where up to `terms` numbers are summed."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    if exact or want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=str(what))
        return
    tol = ROUNDING[want.dtype] * (max(1.0, terms / 16) if ONE_BY_ONE else 1)
    largest = float(np.max(np.abs(want[np.isfinite(want)]), initial=0))
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * max(1.0, terms / 16, largest),
                               err_msg=str(what))


def letters(op, example) -> list[str]:
    """Return the letters of a call's equation whose axes have at least two elements, including axes that
    cannot be split.
    """
    specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(example["shapes"],
                                                         types_of(op, example, np.float32))]
    if not specs:
        return []
    ins, _ = parse(op.equation(specs, attributes(op, example)), len(specs))
    return list(dict.fromkeys(c for t, s in zip(ins, example["shapes"]) for c, n in zip(t, s) if c != "1"
                              and n))


def stretched(op, example, sizes: dict[str, int], others: int) -> dict | None:
    """Return the example with axes of these sizes and splittable axes of at most `others`, or None if the op
    does not accept it.
    """
    specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(example["shapes"],
                                                         types_of(op, example, np.float32))]
    ins, _ = parse(op.equation(specs, attributes(op, example)), len(specs))
    for small in (others, 10 ** 9):              # sizes named by attributes must stay
        shapes = [tuple(sizes[c] if c in sizes and c != "1" else min(n, small) if c.islower() else n
                        for c, n in zip(t, s))
                  for t, s in zip(ins, example["shapes"])]
        try:
            op.infer([Spec(s, as_dtype(t)) for s, t in zip(shapes, types_of(op, example, np.float32))],
                     attributes(op, example))
        except (FlowError, KeyError, IndexError, ZeroDivisionError):
            continue
        return {**example, "shapes": shapes}
    return None


def seed_of(*what) -> int:
    return zlib.crc32(repr(what).encode())
