"""Law: every registered op and its gradients, on the shards of 2 and 3 ranks, equal the result of one
device.
"""
import zlib

import numpy as np
import pytest

from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import Place
from laws.calls import label, thin
from laws.test_spread import CALLS, TRAINED, arrays_of, assert_close_arrays, build, sizes

from .rank_graphs import Run, Single


def assert_distributed_equals_single(op, e, backward):
    arrays, attrs = arrays_of(op, e)

    def make():
        return build(op, arrays, attrs, backward=backward)

    want = Single(make())(*arrays)
    for k in (2, 3):
        place, rng = (Place(tuple(range(k)), (k,)),
                      np.random.default_rng(zlib.crc32(repr((op.name, k)).encode())))
        at = {}
        for i, a in enumerate(arrays):  # each input is split along some axis, or broadcast
            legal = ["B", *(f"S{d}" for d, n in enumerate(a.shape) if n >= k)]
            at[f"x{i}"] = layout(str(rng.choice(legal)), place)
        run = Run(make(), k, at)
        assert_close_arrays(run(*arrays), want, run.inferred.describe())
        assert round(run.sent) == run.inferred.bytes


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_distributed_graphs_have_the_values_of_one_device(case):
    op, example = case
    for e in sizes(op, example):
        assert_distributed_equals_single(op, e, False)


@pytest.mark.parametrize("case", thin(TRAINED), ids=label)
def test_distributed_graphs_have_the_gradients_of_one_device(case):
    op, example = case
    for e in sizes(op, example):
        assert_distributed_equals_single(op, e, True)
