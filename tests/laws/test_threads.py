"""Law: the number of threads does not change the result of a kernel.

Sums may be added in another order, within the tolerance of the laws (draws.assert_equal_or_rounded). A part
that two threads add, or that no thread computes, is far outside of it. Sizes are large enough for every
thread of a team to have a part, and different for every axis, so that parts have uneven ends.
"""
import numpy as np
import pytest

from .calls import attributes, cases, draw_arrays, label, resized
from .draws import EXACT, assert_equal_or_rounded, most_terms
from .members import find_writers
from .test_kernels import run_on

CALLS = cases(lambda op: op.ref is not None and not op.mutates)
TEAMS = (2, 3, 4, 7)
ELEMENTS = 1 << 14
SIZES = (67, 130, 33, 19, 9, 5)


def enlarged(op, example):
    """Return the example with many elements, along few or many axes, where the op accepts them."""
    for skip in range(len(SIZES)):
        order: dict[str, int] = {}
        larger = resized(op, example, lambda c, n, order=order, skip=skip: SIZES[
            min(order.setdefault(c, len(order)) + skip, len(SIZES) - 1)])
        if max((int(np.prod(s)) for s in larger["shapes"]), default=0) <= ELEMENTS:
            return larger
    return example


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_teams_of_any_size_compute_the_same(case):
    op, example = case
    rng = np.random.default_rng(0)
    for e in (enlarged(op, example), example):
        arrays = draw_arrays(op, e, np.float32, rng)
        attrs = attributes(op, e)
        want = run_on(op, arrays, attrs, 1)
        # number of terms per element: along an axis, or all inputs of the result
        terms = [max(most_terms(op, arrays), max((a.size for a in arrays), default=0) // max(y.size, 1))
                 for y in want]
        for team in TEAMS:
            for a, b, n in zip(run_on(op, arrays, attrs, team), want, terms, strict=True):
                assert_equal_or_rounded(a, b, op.name in EXACT, n, f"{team} threads")


@pytest.mark.parametrize("case", [(op, e) for op, e in CALLS if op.cpu is not None and op.view is None],
                         ids=label)
def test_each_element_is_written_by_one_thread(case):
    """For kernels without synchronization: two threads that add to one element would lose or repeat an
    addend, depending on timing.
    """
    op, example = case
    rng = np.random.default_rng(0)
    e = enlarged(op, example)
    arrays = draw_arrays(op, e, np.float32, rng)
    for size in (2, 7):
        writers = find_writers(op, arrays, attributes(op, e), size)
        for count in writers or ():
            np.testing.assert_array_equal(count, 1)
