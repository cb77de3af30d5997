"""Other properties of table launches: indices out of range, scratch memory, size-dependent kernels, and fused
programs.
"""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from on_device import Held, Room, launched

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.program import Formula
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.cuda import programs
from flowedu.cuda.launch import TABLE, fault
from flowedu.cuda.machine import machine
from flowedu.cuda.walk import joined
from laws.calls import run_eagerly
from laws.draws import assert_equal_or_rounded, meaning

FLOATS = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
BAD = {  # op: (arrays with an index that is out of range, attributes, the index)
    "gather": ([FLOATS, np.array([0, 7, 1])], {"axis": 1}, 7),
    "gather_grad": ([FLOATS, np.array([0, -1, 1, 0, 2, 2])], {"axis": 1, "size": 3}, -1),
    "gather_nd": ([FLOATS, np.array([[0, 1], [5, 0]])], {}, 5),
    "scatter_nd": ([FLOATS, np.array([[0], [1], [9], [2], [3]])], {"shape": (4, 6)}, 9),
    "scatter_nd_update": ([FLOATS, np.array([[6]]), FLOATS[:1]], {}, 6),
    "dim_gather": ([FLOATS, np.full((5, 2), 6)], {"axis": 1}, 6),
    "dim_gather_grad": ([FLOATS, np.full((5, 6), -3)], {"axis": 1, "size": 6}, -3),
    "sparse_softmax_cross_entropy": ([np.array([0, 1, 6, 2, 3]), FLOATS], {}, 6),
    "sparse_softmax_cross_entropy_grad": ([FLOATS[:, 0], np.array([0, 1, 6, 2, 3]), FLOATS], {}, 6),
    "max_pool2d_grad": ([FLOATS[None, None], np.full((1, 1, 5, 6), 77)], {"hw": (5, 6)}, 77),
    "max_pool2d_gather": ([FLOATS[None, None], np.full((1, 1, 5, 6), -1)], {}, -1),
    "ctc_loss": ([np.zeros((4, 1, 3), np.float32), np.array([[1, 4]]), np.array([4]), np.array([2])], {}, 4),
    "ctc_loss_grad": ([np.ones(1, np.float32), np.zeros((4, 1, 3), np.float32), np.array([[1, 2]]),
                       np.array([5]), np.array([2])], {}, 5),
}


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_range_is_reported_at_synchronization(name, monkeypatch):
    arrays, attrs, bad = BAD[name]
    told = []
    monkeypatch.setattr("on_device.fault", lambda: told.append(fault()))
    launched(REGISTRY[name], arrays, REGISTRY[name].complete(attrs))
    assert told == [(1, bad)]
    assert fault() is None                                       # reported only once


@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("shape, axis", [((70000,), (0,)), ((3, 20001), (1,)), ((20001, 3), (0,)),
                                         ((9000, 40), (0,)),
                                         ((2, 9000, 5), (1,)), ((2, 300, 4, 300), (1, 3))])
def test_blocks_that_share_an_output(name, shape, axis):
    op, x = REGISTRY[name], np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    attrs = op.complete({"axis": axis})
    assert_equal_or_rounded(launched(op, [x], attrs)[0], meaning(op, [x], attrs)[0], False, x.size)


@pytest.mark.parametrize("shape", [(64, 3, 40), (33, 65), (2, 100, 50), (2, 3, 17, 31)])
def test_transposed_copies(shape):
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32).T
    np.testing.assert_array_equal(launched(REGISTRY["contiguous"], [x], ())[0], x)
    y = np.swapaxes(x, 0, 1)
    np.testing.assert_array_equal(launched(REGISTRY["contiguous"], [y], ())[0], y)


@pytest.mark.parametrize("m, n, k", [(64, 64, 16), (65, 63, 17), (130, 70, 40), (1, 200, 33), (128, 1, 5)])
@pytest.mark.parametrize("flip", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_several_tiles(m, n, k, flip):
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(s) for s in ((k, m) if flip[0] else (m, k), (n, k) if flip[1] else (k, n)))
    op = REGISTRY["matmul"]
    attrs = op.complete({"transpose_a": flip[0], "transpose_b": flip[1]})
    np.testing.assert_allclose(launched(op, [a, b], attrs)[0], meaning(op, [a, b], attrs)[0], rtol=1e-11,
                               atol=1e-11)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_of_several_tiles(groups):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 6, 18, 17)), rng.standard_normal((70 * groups, 6 // groups, 3, 3))
    attrs = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "groups": groups}
    y = launched(REGISTRY["conv2d"], [x, w], REGISTRY["conv2d"].complete(attrs))[0]
    np.testing.assert_allclose(y, run_eagerly(REGISTRY["conv2d"], [x, w],
                                              REGISTRY["conv2d"].complete(attrs))[0], rtol=1e-9, atol=1e-9)
    for name, given, more in (("conv2d_input_grad", [y, w], {"hw": (18, 17)}),
                              ("conv2d_weight_grad", [y, x], {"kernel": (3, 3)})):
        op, both = REGISTRY[name], REGISTRY[name].complete({**attrs, **more})
        np.testing.assert_allclose(launched(op, given, both)[0], run_eagerly(op, given, both)[0], rtol=1e-9,
                                   atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1000, 2500])
@pytest.mark.parametrize("backwards", [False, True])
def test_running_sums_of_long_rows(n, backwards):
    op, x = REGISTRY["cumsum"], np.random.default_rng(n).integers(-9, 9, (3, n))
    attrs = op.complete({"axis": 1, "backwards": backwards})
    np.testing.assert_array_equal(launched(op, [x], attrs)[0], meaning(op, [x], attrs)[0])


ROWS = {"softmax": 1, "log_softmax": 1, "softmax_grad": 2, "log_softmax_grad": 2, "softmax_cross_entropy": 2,
        "masked_softmax": 1, "masked_softmax_grad": 2, "sparse_softmax_cross_entropy": 1, "layer_norm": 3,
        "layer_norm_grad": 3, "argmax": 1}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("n", [129, 700])
def test_rows_that_several_warps_share(name, n):
    """No example of the records has rows this long."""
    op, rng = REGISTRY[name], np.random.default_rng(n)
    arrays = [rng.standard_normal((3, n)).astype(np.float32) for _ in range(ROWS[name])]
    attrs = {}
    if name.startswith("layer_norm"):
        grad = name.endswith("grad")
        sizes = (n, 3, 3) if grad else (n, n)                     # gamma, mean, inv_std; or gamma, beta
        arrays = arrays[:1 + grad] + [rng.random(size).astype(np.float32) for size in sizes]
        attrs = {"begin_norm_axis": 1} if grad else {"begin_norm_axis": 1, "epsilon": 1e-3}
    elif name.startswith("masked"):
        arrays.append(rng.integers(0, 2, (3, n)).astype(np.int8))
        attrs = {} if name.endswith("grad") else {"fill": -9.0}
    elif name.startswith("sparse"):
        arrays.insert(0, rng.integers(0, n, 3))
    elif name == "argmax":
        attrs = {"axis": 1}
    attrs = op.complete(attrs)
    for got, want in zip(launched(op, arrays, attrs), meaning(op, arrays, attrs), strict=True):
        assert_equal_or_rounded(got, want, name == "argmax", n)


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000])
def test_sorting_is_stable(n):
    op, x = REGISTRY["argsort"], np.random.default_rng(n).integers(0, 5, (3, n)).astype(np.float32)
    x[:, ::7] = np.nan
    for down in (False, True):
        np.testing.assert_array_equal(launched(op, [x], (down,))[0], meaning(op, [x], (down,))[0])


def test_scratch_may_be_given():
    x = np.random.default_rng(4).standard_normal((2, 50)).astype(np.float32)
    held, y = Held(x), Room(Spec((2,), float32))
    row, args = TABLE["sum", 0], [held.view, y.view]
    assert row.work(args, (0, 1), ()) == 0                       # short rows need none
    top = Held(x), Room(Spec((2, 3), REGISTRY["top_k"].infer([Spec((2, 50), float32)], (3,))[0].dtype))
    need = TABLE["top_k", 0].work([v.view for v in top], (), ())
    assert need == 8 * 100
    own = machine().driver.mem_alloc(need)
    TABLE["top_k", 0]([v.view for v in top], work=int(own))
    np.testing.assert_array_equal(top[1].read(), np.argsort(-x, 1)[:, :3])


def test_chains_are_compiled_together():
    chains = [Formula(2, [("mul", 2, (0, 1)), (name, 3, (2,))], [3]) for name in ("sin", "cos", "tan")]
    programs.together([(f, (0, 0)) for f in chains])
    modules = {programs.place(f, (0, 0))[0] for f in chains}
    assert len(modules) == 1 and modules.pop().source.count("__global__") == 6
    assert programs.place(chains[0], (1, 1))[0] is not programs.place(chains[0], (0, 0))[0]


def test_axes_with_uniform_strides_are_merged():
    assert joined((2, 3, 4), [(12, 4, 1), (12, 4, 1)]) == ([24], [[1], [1]])
    assert joined((2, 1, 4), [(4, 9, 1), (0, 0, 1)]) == ([2, 4], [[4, 1], [0, 1]])
    assert joined((), [(), ()]) == ([1], [[1], [1]])


ONCE = """
import sys
import numpy as np
from laws.calls import attributes, cases, strided
from laws.draws import EXACT, arrays_of, assert_equal_or_rounded, meaning, most_terms
from no_kernel import NO_KERNEL
from on_device import launched
from flowedu.cuda.table import TABLE
calls = cases(lambda op: op.ref is not None and not op.mutates and op.view is None and op.cpu != "elementwise"
              and op.name not in NO_KERNEL)
for op, example in calls:
    for layout in range(2):
        arrays = [strided(a, layout)
                  for a in arrays_of(op, example, np.dtype(np.float32), np.random.default_rng(5), "plain")]
        attrs = attributes(op, example)
        for got, want in zip(launched(op, arrays, attrs), meaning(op, arrays, attrs), strict=True):
            assert_equal_or_rounded(got, want, op.name in EXACT, most_terms(op, arrays), op.name)
print(len(calls), "calls")
"""


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_results_do_not_depend_on_the_order_of_threads(seed):
    """The simulator draws the order of threads and blocks from a seed that it reads at startup."""
    tests = Path(__file__).parents[1]
    env = {**os.environ, "FLOWEDU_CUDA_SEED": str(seed),
           "PYTHONPATH": os.pathsep.join([str(tests), str(tests / "cuda")])}
    done = subprocess.run([sys.executable, "-c", ONCE], env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 100
