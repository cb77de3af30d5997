"""Law: kernels equal their reference if an axis is as long as one of their blocks, or one longer or shorter.

Covers every axis of every op, including axes that cannot be split. Kernels use blocks of 16,
32, 64, 128, 256, 512, 2048, and (tiles of elementwise chains) 4096 bytes. Dtypes, layouts, and kinds of
values alternate.
"""
import itertools

import numpy as np
import pytest

from .calls import attributes, cases, label, run_eagerly, strided
from .draws import (
    EXACT,
    KINDS,
    arrays_of,
    assert_equal_or_rounded,
    letters,
    meaning,
    seed_of,
    stretched,
    supported,
)

CALLS = cases(lambda op: op.ref is not None and op.cpu is not None and not op.mutates)
BLOCKS = (16, 32, 64, 128, 256, 512, 2048, 4096)
SIZES = tuple(n + d for n in BLOCKS for d in (-1, 0, 1))
FEW = (17, 64, 127, 257, 512, 1025, 4097)        # one engine runs all elementwise ops
MOST = 40_000                                     # elements of the largest input


def sizes(op):
    return FEW if op.elementwise else SIZES


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_kernels_equal_their_reference_at_block_edges(case):
    op, example = case
    types = supported(op, example)
    tried = 0
    for letter in letters(op, example):
        for n in sizes(op):
            e = stretched(op, example, {letter: n}, 2 if n > 300 else 3)
            if e is None or max(int(np.prod(s)) for s in e["shapes"]) > MOST:
                continue
            rng = np.random.default_rng(seed_of(op.name, letter, n))
            attrs = attributes(op, e)
            kind, dtype = KINDS[(tried + n) % 3], types[tried // 2 % len(types)]
            tried += 1
            arrays = arrays_of(op, e, dtype, rng, kind)
            got = run_eagerly(op, [strided(a, tried % 4) for a in arrays], attrs)
            for g, w in zip(got, meaning(op, arrays, attrs), strict=True):
                assert_equal_or_rounded(g, w, op.name in EXACT, 1 if op.elementwise else n,
                                        (letter, n, kind, dtype))


FOLDS = ("sum", "max", "min", "argmax", "cumsum", "linear_scan", "softmax", "log_softmax", "softmax_grad",
         "log_softmax_grad", "layer_norm", "layer_norm_grad", "batch_norm", "batch_norm_grad", "gather_grad",
         "scatter_nd")
LONG = ((65, 257), (257, 130), (130, 513), (600, 33))


@pytest.mark.parametrize("case", cases(lambda op: op.name in FOLDS), ids=label)
def test_kernels_equal_their_reference_for_two_long_axes(case):
    """Kernels that sum along one axis and block another, for instance with accumulators that are flushed
    every 64 rows.
    """
    op, example = case
    for a, b in itertools.combinations(letters(op, example), 2):
        for m, n in LONG:
            e = stretched(op, example, {a: m, b: n}, 2)
            if e is None or max(int(np.prod(s)) for s in e["shapes"]) > 2 * MOST:
                continue
            kind = "ties" if (m + n) % 2 else "plain"
            arrays = arrays_of(op, e, np.dtype(np.float32), np.random.default_rng(m), kind)
            attrs = attributes(op, e)
            for got, want in zip(run_eagerly(op, arrays, attrs), meaning(op, arrays, attrs), strict=True):
                assert_equal_or_rounded(got, want, op.name in EXACT, m * n // 8, (a, m, b, n, kind))
