"""The table of 16-bit floats: jobs and global tensors equal eager calls to the bit.
(test_every_op.py tests eager calls, the tape, and graphs; tests/cuda/test_halves.py tests GPUs.) The
book's page lists the same unsupported ops.
"""
import re
from pathlib import Path

import numpy as np
import pytest
from test_every_op import EPSILON, REFUSED, bits, draw_float32_arrays, list_calls_and_dtypes, rounded

import flowedu as flow
from common import as_list, fresh_session, run  # noqa: F401
from flowedu import typing as tp
from flowedu.core.ops.view import cast
from flowedu.nn.amp import lists
from laws.calls import attributes

PAGE = Path(__file__).parents[2] / "book" / "half_precision.md"


@pytest.mark.parametrize(("case", "half"), list_calls_and_dtypes(lambda op: op is not cast))
def test_a_job_gives_the_same_bits(case, half):
    """NumPy has no bfloat16, so the job casts its inputs and results."""
    op, example = case
    attrs = attributes(op, example)
    narrow, _ = rounded(draw_float32_arrays(op, example), half)
    want = as_list(op.call(tuple(narrow), attrs))

    def call(*values):
        given = [cast.call((v,), (x.dtype,)) if x.dtype is half else v for v, x in zip(values, narrow)]
        found = [cast.call((y,), (flow.float32,)) if y.dtype is half else y
                 for y in as_list(op.call(tuple(given), attrs))]
        return tuple(found) if len(found) > 1 else found[0]

    def body(*blobs):
        return blobs[0].context.apply(call, blobs, {}, "op", "out")

    arrays = [bits(x) for x in narrow]
    kinds = tuple([tp.Numpy] * len(want))
    found = run(body, *arrays, returns=tuple[kinds] if len(kinds) > 1 else tp.Numpy)
    for got, y in zip(as_list(found), want, strict=True):
        np.testing.assert_array_equal(got, bits(y))


@pytest.mark.parametrize(("case", "half"), list_calls_and_dtypes(lambda op: op is not cast))
def test_global_tensors_give_the_same_bits(case, half, world):
    """Identical to the bit if every device holds all data. If devices hold rows, sums may be added in another
    order.
    """
    world(2)
    op, example = case
    attrs = attributes(op, example)
    narrow, _ = rounded(draw_float32_arrays(op, example), half)
    want = as_list(op.call(tuple(narrow), attrs))
    both = flow.placement("cpu", [0, 1])
    for split in (False, True):
        rows = [flow.sbp.split(0) if split and x.ndim and x.shape[0] > 1 else flow.sbp.broadcast
                for x in narrow]
        given = [flow.tensor(bits(x), dtype=x.dtype, placement=both, sbp=s) for x, s in zip(narrow, rows)]
        found = as_list(op.call(tuple(given), attrs))
        for got, y in zip(found, want, strict=True):
            got = got.to_global(both, flow.sbp.broadcast).to_local(rank=0)
            assert got.dtype is y.dtype
            if not split or not y.dtype.is_floating_point:
                np.testing.assert_array_equal(bits(got), bits(y))
            else:
                room = 4 * EPSILON[half] * max(1.0, float(np.abs(bits(y)).max(initial=0,
                                                                              where=np.isfinite(bits(y)))))
                np.testing.assert_allclose(bits(got), bits(y), rtol=4 * EPSILON[half], atol=room)


def test_the_page_lists_every_unsupported_op():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [re.findall(r"`(\w+)`", line) for line in lines if line.startswith("| `")]
    named = [re.findall(r"`(\w+)`", line.rsplit("|", 2)[1]) for line in lines]
    refused = [names.split() for names in REFUSED.values()]
    assert sorted(map(sorted, rows)) == sorted(map(sorted, refused))
    for ops in (lists.NARROW, lists.WIDE, lists.AS_FIRST, lists.MIXED):
        assert sorted(op.name for op in ops) in named
