"""The ladders of chapter 8: every step is correct at ragged sizes, has no fault in any order of threads, and
does less work than the step before.
"""
import functools
import inspect
import io
import json

import numpy as np
import pytest
from cuda_common import alone, in_simulator

import flowedu as flow
from flowedu.cuda.lessons import LADDERS, table
from flowedu.cuda.modules import HOME

SIZES = {
    "product": [(16, 16, 16), (17, 33, 5), (1, 40, 31), (64, 3, 100), (130, 132, 12), (5, 257, 9), (4, 4, 0)],
    "sum": [(0,), (1,), (255,), (256,), (5000,), (16 * 256 + 1,)],
    "softmax": [(1, 1), (3, 31), (5, 33), (2, 1000), (9, 1024), (4, 128)],
    "transpose": [(1, 1), (31, 33), (64, 32), (1, 100), (70, 5)],
    "convolution": [(1, 1, 3, 3, 1, 3, 3), (2, 3, 7, 9, 5, 3, 2), (1, 20, 5, 5, 17, 1, 1),
                    (3, 2, 6, 6, 33, 5, 6)],
    "attention": [(1, 1, 1), (33, 31, 5), (5, 70, 64), (40, 3, 33), (64, 64, 32)],
}
CASES = [(name, step.name, size) for name, ladder in LADDERS.items() for step in ladder.steps
         for size in SIZES[name]]


def assert_step_computes_answer(name, step, size):
    ladder = LADDERS[name]
    arrays = ladder.inputs(*size)
    want = ladder.answer(*(a.astype(np.float64) for a in arrays))
    np.testing.assert_allclose(ladder[step](*arrays), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name, step, size", CASES, ids=lambda v: str(v).replace(" ", ""))
def test_a_step_gives_the_right_numbers(name, step, size):
    assert_step_computes_answer(name, step, size)


def everything():
    for case in CASES:
        assert_step_computes_answer(*case)


@in_simulator
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_fault_in_any_order_of_threads(seed):
    alone("import flowedu as flow; flow.cuda.is_available(); import test_kernel_lessons as t; t.everything()",
          FLOWEDU_CUDA_SEED=str(seed), FLOWEDU_CUDA_CHECK="1")


def test_every_file_of_the_lessons_is_a_step():
    files = {f"lessons/{p.name}" for p in (HOME / "cuda" / "lessons").glob("*.cu")}
    assert {s.file for ladder in LADDERS.values() for s in ladder.steps} == files


# counters, {(ladder, step): {counter: maximum ratio to the step before}}
LESS = {
    ("product", "shared"): dict(global_bytes=1 / 8, global_loads=1 / 8),
    ("product", "registers"): dict(global_bytes=1 / 4, shared_loads=1 / 3),
    ("product", "vectors"): dict(global_bytes=1, global_loads=1 / 4, shared_loads=1 / 3, shared_stores=0.7),
    ("product", "double"): dict(global_bytes=1, global_loads=1, shared_loads=1, barriers=0.55),
    ("product", "async"): dict(global_bytes=1, shared_loads=1, barriers=1),
    ("sum", "shuffle"): dict(global_bytes=1, shared_loads=1 / 8, shared_stores=1 / 2, barriers=1 / 8),
    ("sum", "one pass"): dict(launches=1 / 2, global_bytes=1.01),
    ("softmax", "online"): dict(global_bytes=3 / 4),
    ("softmax", "warp"): dict(global_bytes=2 / 3, shared_loads=0, shared_stores=0, barriers=0),
    ("transpose", "tile"): dict(global_bytes=1, sectors=8 / 36),
    ("transpose", "padded"): dict(global_bytes=1, sectors=1, shared_loads=1, conflicts=0),
    ("convolution", "gemm"): dict(global_bytes=1 / 8),
    ("attention", "online"): dict(global_bytes=1 / 2, barriers=1 / 2, launches=1 / 3),
}


@functools.cache
def counts(name):
    return LADDERS[name].counts()


def later_steps():
    return [(name, before.name, step.name) for name, ladder in LADDERS.items()
            for before, step in zip(ladder.steps, ladder.steps[1:])]


@in_simulator
@pytest.mark.parametrize("name, before, step", later_steps())
def test_a_step_does_less_than_the_one_before(name, before, step):
    old, new = counts(name)[before], counts(name)[step]
    for counter, part in LESS[name, step].items():
        assert (new[counter] <= part
                * old[counter]), f"{counter}: {old[counter]} -> {new[counter]}\n{table(counts(name))}"


@in_simulator
@pytest.mark.parametrize("name, step", [(n, s.name) for n, ladder in LADDERS.items() for s in ladder.steps
                                        if (n, s.name) != ("transpose", "tile")])
def test_bank_conflicts_are_rare(name, step):
    """Bank conflicts are the subject of one step and nearly absent from all others."""
    c = counts(name)[step]
    assert c["conflicts"] <= 0.05 * (c["shared_loads"] + c["shared_stores"])


@in_simulator
def test_bytes_of_the_matrix_products_match_hand_computed_values():
    """Each of n^3 products reads two values; a block's tile of t x t results reads each value once for t
    results.
    """
    n, stored = 128, 4 * 128 ** 2
    for step, tile in (("naive", 1), ("shared", 16), ("registers", 128), ("vectors", 128), ("double", 128),
                       ("async", 128)):
        assert counts("product")[step]["global_bytes"] == 4 * 2 * n ** 3 // tile + stored, step


@in_simulator
def test_bytes_of_rows_and_of_attention():
    elements = 16 * 1000 * 4
    assert [c["global_bytes"] // elements for c in counts("softmax").values()] == [4, 3, 2]
    n, width = 128, 64
    blocks = n // 32                                                  # each reads all keys and values once
    assert counts("attention")["online"]["global_bytes"] == 4 * (2 * n * width + blocks * 2 * n * width)


# ladder steps in the library
@pytest.mark.parametrize("n", [1, 32, 33, 1000, 1024, 1025])
def test_the_librarys_softmax_of_short_and_of_long_rows(n):
    """A warp computes a row of up to 1024 elements and a block a longer one; rows with only -inf, and with
    NaN, are included.
    """
    x = LADDERS["softmax"].inputs(7, n)[0]
    x[1] = -np.inf
    x[2, n // 2] = np.nan
    x[3, 0] = np.inf
    x[4] = 1e30
    for f in ("softmax", "log_softmax"):
        want, got = (getattr(t, f)(-1) for t in (flow.tensor(x), flow.tensor(x, device="cuda")))
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@in_simulator
def test_the_librarys_kernels_are_as_good_as_a_step_of_the_ladder():
    def counted(f, *arrays):
        tensors = [flow.tensor(a, device="cuda") for a in arrays]
        with flow.cuda.profile(io.StringIO()) as p:
            f(*tensors)
        one, = p.kernels.values()
        return one

    c = counted(lambda x: x.softmax(-1), *LADDERS["softmax"].inputs())
    assert c["global_bytes"] == counts("softmax")["warp"]["global_bytes"] and c["barriers"] == 0
    c = counted(lambda x: x.t().contiguous(), *LADDERS["transpose"].inputs())
    assert c["sectors"] == counts("transpose")["padded"]["sectors"] and c["conflicts"] == 0
    c = counted(lambda x: x.sum(), *LADDERS["sum"].inputs())
    assert c["launches"] == 1 and c["global_bytes"] <= counts("sum")["one pass"]["global_bytes"]
    c = counted(lambda x, w: flow.nn.functional.conv2d(x, w), *LADDERS["convolution"].inputs())
    assert c["global_bytes"] <= counts("convolution")["gemm"]["global_bytes"]
    c = counted(lambda a, b: a @ b, *LADDERS["product"].inputs())
    assert c["global_bytes"] <= counts("product")["shared"]["global_bytes"] / 3


@in_simulator
def test_counters_do_not_depend_on_the_order_of_threads():
    script = ("import json, flowedu as flow; flow.cuda.is_available(); from flowedu.cuda.lessons import "
              "LADDERS; print(json.dumps(LADDERS['attention'].counts(40, 33, 20)))")
    found = [json.loads(alone(script, FLOWEDU_CUDA_SEED=seed)) for seed in "01"]
    assert found[0] == found[1]


def test_a_table_has_a_line_for_each_step():
    c = dict.fromkeys(("launches", "global_bytes", "sectors", "global_loads", "global_stores", "shared_loads",
                       "shared_stores", "conflicts", "barriers"), 2000)
    lines = table({"first": c, "second": c}).splitlines()
    assert [line.split()[0] for line in lines] == ["step", "first", "second"]
    assert len({len(line) for line in lines}) == 1 and "2,000" in lines[1] and "0.5" in lines[1]


def test_the_steps_have_explanations():
    assert all(s.why and inspect.isfunction(s._launch) for ladder in LADDERS.values() for s in ladder.steps)
