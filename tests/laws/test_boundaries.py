"""Law: kernels compute what their records say also where an axis is as long as one of their blocks, one longer or shorter.

Every axis of every op in turn, those that devices may not split as well. Kernels work in blocks of 16, 32, 64, 128, 256,
512, 2048 and (tiles of elementwise chains) 4096 bytes. Element types, layouts and kinds of values take turns.
"""
import numpy as np
import pytest

from .calls import attributes, cases, label, run, strided
from .draws import EXACT, KINDS, agree, arrays_of, letters, meaning, seed_of, stretched, supported

CALLS = cases(lambda op: op.ref is not None and op.cpu is not None and not getattr(op, "mutates", None))
BLOCKS = (16, 32, 64, 128, 256, 512, 2048, 4096)
SIZES = tuple(n + d for n in BLOCKS for d in (-1, 0, 1))
FEW = (17, 64, 127, 257, 512, 1025, 4097)        # one engine runs all elementwise ops
MOST = 40_000                                     # elements of the largest input


def sizes(op):
    return FEW if op.elementwise else SIZES


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_at_the_edges_of_blocks(case):
    op, example = case
    types = supported(op, example)
    tried = 0
    for letter in letters(op, example):
        for n in sizes(op):
            e = stretched(op, example, letter, n, 2 if n > 300 else 3)
            if e is None or max(int(np.prod(s)) for s in e["shapes"]) > MOST:
                continue
            rng = np.random.default_rng(seed_of(op.name, letter, n))
            attrs = attributes(op, e)
            kind, dtype = KINDS[(tried + n) % 3], types[tried // 2 % len(types)]
            tried += 1
            arrays = arrays_of(op, e, dtype, rng, kind)
            got = run(op, [strided(a, tried % 4) for a in arrays], attrs)
            for g, w in zip(got, meaning(op, arrays, attrs), strict=True):
                agree(g, w, op.name in EXACT, 1 if op.elementwise else n, (letter, n, kind, dtype))
