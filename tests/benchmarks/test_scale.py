"""Tests of benchmarks/scale.py: exponents of growth, verdicts, and predictions for many devices."""
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS

FOLDER = Path(__file__).parents[2] / "benchmarks"
BAR = SimpleNamespace(update=lambda n=1: None, set_postfix_str=lambda text: None)


@pytest.fixture
def fits(program):
    return program("fits")


# ---- the fit
def test_fit_finds_the_exponent_despite_a_constant_and_noise(fits):
    @given(st.floats(0.3, 2.5), st.floats(0, 1), st.integers(6, 10), st.integers(0, 2 ** 32 - 1))
    def law(power, share, many, seed):
        n = 4.0 ** np.arange(many)
        constant = share * n[-4] ** power                    # the three largest sizes exceed it
        v = (constant + n ** power) * np.exp(0.01 * np.random.default_rng(seed).standard_normal(many))
        assert abs(fits.fit(n, v).exponent - power) < 0.15
        exact = fits.fit(n, constant + n ** power)
        assert (abs(exact.exponent - power) < 0.05
                and exact.at(n[-1]) == pytest.approx(constant + n[-1] ** power, rel=0.1))
    law()


def test_growth_above_the_expected_order_is_detected(fits):
    n = 10.0 ** np.arange(6)
    for v, nature, worse in ((3 + n, 1, False), (3 + n * np.log2(n + 1), 1, False), (1e4 + n ** 2, 1, True),
                             (5 + n ** 2, 2, False), (n + n ** 2 / 1e3, 1, True), (5 + n ** 1.5, 1, True),
                             (n ** 0, 1, False)):
        assert fits.fit(n, v).exceeds(nature) is worse, v


def test_fit_returns_none_for_few_sizes_or_zeros(fits):
    assert fits.fit([1, 2, 4], [1, 2, 4]) is None and fits.fit([1, 2, 4, 8, 16], [0, 0, 0, 1, 2]) is None


# ---- rows
def make_sweep(program, measure, sizes=(1, 10, 100, 1000, 10000)):
    return program("scale_rows").Sweep("made up", "n", sizes, measure, {"square": 2}, rounds=2)


def test_each_quantity_of_a_row_has_a_verdict(program):
    scale = program("scale")
    row = make_sweep(program, lambda n: {"step": 1e-6 * (5 + n), "square": 1e-12 * n * n,
                                         "bad": 1e-12 * n * n, "memory": 7 + n * n})
    sizes, found, why = scale.measure(row, False, 1e9, 1 << 60, BAR)
    assert sizes == [*row.sizes] and why == ""
    curves = {c["quantity"]: c for c in scale.curves(row, sizes, found)}
    assert ({q for q, c in curves.items() if c["worse"]} == {"bad", "memory"}
            and curves["memory"]["unit"] == "bytes")
    said = {q: scale.verdict(c) for q, c in curves.items()}
    assert said == {"step": "nothing worse than linear", "square": "nothing worse than its nature, 2",
                    "bad": "WORSE than linear", "memory": "WORSE than linear"}


def test_the_fastest_of_several_rounds_counts(program):
    scale, calls = program("scale"), iter(range(100, 0, -1))
    row = make_sweep(program, lambda n: {"step": next(calls)}, (1, 2))
    assert scale.measure(row, False, 1e9, 1 << 60, BAR) == ([1, 2], [{"step": 97}, {"step": 96}], "")
    assert scale.measure(row, False, 1e9, 0, BAR) == ([], [], "no size is that small")


def test_a_worse_measurement_is_repeated(program):
    """Another process disturbs the first three measurements of the largest size, but not the fourth."""
    scale, calls = program("scale"), []

    def disturbed(n):
        calls.append(n)
        return {"step": 1e-6 * n * (30 if n == 10000 and calls.count(n) < 4 else 1)}
    row = make_sweep(program, disturbed)
    sizes, found, _ = scale.measure(row, False, 1e9, 1 << 60, BAR)
    assert calls.count(10000) == 4 and not scale.curves(row, sizes, found)[0]["worse"]


def test_slow_and_failing_programs_are_left_out_and_reported(program):
    scale = program("scale")
    slow = make_sweep(program, lambda n: {"step": float(n)})
    assert scale.measure(slow, False, 200, 1 << 60, BAR) == (
        [1, 10, 100], [{"step": 1.0}, {"step": 10.0}, {"step": 100.0}], "not 1,000: more than 200 s")

    def deep(n):
        if n == 100:
            raise RecursionError("too deep")
        return {"step": float(n)}
    sizes, found, why = scale.measure(make_sweep(program, deep), False, 1e9, 1 << 60, BAR)
    assert sizes == [1, 10] and len(found) == 2 and why == "FAILS at 100: RecursionError: too deep"


@pytest.mark.slow
def test_scale_writes_the_curves_that_it_prints(tmp_path):
    done = subprocess.run([sys.executable, FOLDER / "scale.py", "--quick", "--largest", "8", "--out",
                           tmp_path, "--",
                           "batch: MLP, training", "chain of ops"], capture_output=True, encoding="utf-8",
                          timeout=HANGS)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "scale.json").read_text(encoding="utf-8"))
    assert {(c["axis"], c["quantity"]) for c in found["curves"]} >= {("batch", "step"), ("batch", "memory"),
                                                                     *(
                                                                         ("ops", q)
                                                                         for q in ("trace", "derivative",
                                                                                   "passes", "plan",
                                                                                   "first run", "forward",
                                                                                   "backward"))}
    for c in found["curves"]:
        assert c["quantity"] in done.stdout and max(c["sizes"]) <= 8 and len(c["sizes"]) == len(c["values"])
    assert (tmp_path / "scale.svg").read_text(encoding="utf-8").startswith("<?xml") and not [*tmp_path.glob(
        "*.part")]


# ---- devices
PLANS = ("data", "tensor", "pipeline", "ZeRO 1", "ZeRO 2", "ZeRO 3")


@pytest.mark.parametrize("plan", PLANS)
def test_the_prediction_matches_a_run_on_that_many_devices(program, world, plan):
    """A plan compiled for missing ranks sends and allocates as many bytes as one that runs on them."""
    devices = program("scale_devices")
    size = devices.Size(16, 4, 16, 4)
    said = devices.predicted(plan, size, 4)
    world(4)
    graph, inputs = devices.laid_out(plan, size, 4)
    graph(*inputs)
    assert said["sent"] == graph.bytes / 4 > 0
    assert said["memory"] == graph.memory()[0].total


def test_work_per_device_falls_with_more_devices(program):
    devices = program("scale_devices")
    size = devices.Size(16, 4, 16, 4)
    alone = devices.predicted("data", size, 1)
    assert alone["sent"] == 0 and alone["waiting"] == 1
    for plan in PLANS:
        work = [devices.predicted(plan, size, k)["work"] for k in (2, 4, 8, 16)]
        assert work == sorted(work, reverse=True) and alone["work"] / 2 <= work[0] < alone["work"], plan
    assert devices.predicted("pipeline", size, 16)["waiting"] == (4 + 4 - 1) / 4
    found = {"work": alone["work"] / 2, "waiting": 1.5, "sent": 10}
    assert devices.seconds(found, {**alone, "seconds": 4.0}, 5.0) == 4 / 2 * 1.5 + 10 / 5
    assert flow.tensor([1.0]).global_layout is None                      # the world of ranks is restored
