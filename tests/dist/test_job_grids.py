"""2-D SBP in job functions: with any grids and casts, a job computes the result of one device."""
import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, job, refused  # noqa: F401
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.distributed import spread as spreading
from flowedu.errors import ArgumentError, CheckError, GraphError, JobBuildAndInferError, UnsupportedError
from flowedu.ops import REGISTRY
from laws.graphs import run_graph
from laws.test_modes import evaluate, expression

HINT = REGISTRY["distribute_hint"]
cast = flow.hierarchical_parallel_cast
D = flow.distribute
GRID = (2, 2)
PAIRS = [["S(0)", "B"], ["B", "S(0)"], ["S(0)", "S(1)"], ["S(1)", "S(0)"], ["S(0)", "S(0)"], ["B", "P"],
         ["P", "S(1)"]]


def grid(hierarchy=GRID):
    """Return a placement of all devices of the grid, or of one device if `one` is set."""
    return flow.scope.placement("cpu", f"0:0-{int(np.prod(hierarchy)) - 1}", hierarchy)


def run_steps(devices, body, *arrays, steps=4, **options):
    """Return the results of some steps, the variables afterwards, and the job."""
    flow.clear_default_session()
    flow.config.cpu_device_num(devices)
    options = {"type": "train", **options}
    made = job(body, *arrays, **options)
    results = [made(*arrays) for _ in range(steps)]
    return results, {k: v.numpy() for k, v in flow.get_all_variables().items()}, made


def assert_close_runs(got, want, rtol=1e-4, atol=1e-5):
    for a, b in zip(got[0], want[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    assert got[1].keys() == want[1].keys()
    for name, b in want[1].items():
        np.testing.assert_allclose(got[1][name], b, rtol=rtol, atol=atol, err_msg=name)


def rows(made, op=None):
    return [r for r in made.compiled.spread.rows if op is None or r.op == op]


# ---- training
def make_mlp_body(hierarchy, one, two, there, **how):
    """Return a body with two dense layers in these layouts. The batch size of 10 and the widths split
    unevenly.
    """
    def body(x, labels):
        with grid(hierarchy):
            x = cast(x, parallel_distribution=there)
            w = flow.get_variable("one", (7, 6), initializer=constant(f32(7, 6, seed=3)),
                                  parallel_distribution=one, regularizer=flow.regularizers.l2(0.01))
            h = flow.nn.relu(flow.matmul(x, w, transpose_b=True, name="mm"))
            h = cast(h, parallel_distribution=there, **how)
            w = flow.get_variable("two", (5, 7), initializer=constant(f32(5, 7, seed=4)),
                                  parallel_distribution=two)
            y = flow.matmul(h, w, transpose_b=True)
        if np.prod(hierarchy) > 1:
            y = cast(y, [4], ["S(0)"])
        loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(labels, y))
        clip = flow.optimizer.grad_clipping.by_global_norm(0.5)
        flow.optimizer.Adam(constant_rate(0.01), grad_clipping=clip).minimize(loss)
        return loss
    return body


DATA = f32(10, 6), np.arange(10, dtype=np.int32) % 5


@pytest.fixture(scope="module")
def alone():
    return run_steps(1, make_mlp_body((1, 1), *[["B", "B"]] * 3), *DATA)


@pytest.mark.parametrize("there", PAIRS, ids=str)
@pytest.mark.parametrize("one, two", [("B", "B"), (["B", "S(0)"], ["B", "S(1)"]),
                                      (["S(0)", "S(1)"], ["S(1)", "B"])],
                         ids=str)
def test_training_on_a_grid_equals_one_device(alone, there, one, two):
    found = run_steps(4, make_mlp_body(GRID, one, two, there), *DATA)
    assert_close_runs(found, alone)
    assert any(r.place.hierarchy == GRID for r in rows(found[2], "matmul"))


MODES = [dict(grad_mode=m) for m in ("restore", "auto", "identity")] + [
    dict(grad_mode="manual", grad_parallel_distribution=s) for s in PAIRS] + [
    dict(grad_mode="manual", grad_parallel_hierarchy=[4], grad_parallel_distribution=["S(1)"])]


@pytest.mark.parametrize("how", MODES, ids=lambda d: "-".join(map(str, d.values())))
def test_the_layout_of_the_gradient_changes_nothing_else(alone, how):
    assert_close_runs(run_steps(4, make_mlp_body(GRID, ["B", "S(0)"], ["B", "S(1)"], ["S(0)", "S(1)"], **how),
                                *DATA), alone)


def test_the_layout_of_the_gradient():
    x, w = f32(8, 6), f32(6, 8, seed=1)

    def backward(**how):
        def body(x):
            with grid():
                v = flow.get_variable("w", w.shape, initializer=constant(w),
                                      parallel_distribution=["B", "S(1)"])
                x = cast(x, parallel_distribution=["S(0)", "B"])
                y = flow.matmul(x, v)                                            # (S(0), S(1))
                y = cast(y, parallel_distribution=["S(0)", "B"], name="gather", **how)
                loss = flow.math.reduce_sum(flow.math.square(y), name="loss")
            flow.optimizer.SGD(constant_rate(0.1)).minimize(loss)
            return loss
        made = run_steps(4, body, x, steps=1)[2]
        found = rows(made, "parallel_cast")
        at = next(i for i, r in enumerate(found) if r.name == "gather")
        return [str(r.makes[0]) for r in found[at + 1:]]

    restored = "(S(0), S(1)) on 0-3 (2x2)"
    assert backward() == backward(grad_mode="restore") == [restored]
    assert backward(grad_mode="auto") == backward(grad_mode="identity") == []
    assert backward(grad_mode="manual", grad_parallel_distribution=["S(1)",
                                                                    "B"]) == ["(S(1), B) on 0-3 (2x2)"]
    assert backward(grad_mode="manual", grad_parallel_hierarchy=[4],
                    grad_parallel_distribution=["S(0)"]) == ["S(0) on 0-3"]


def test_tensor_parallel_on_a_grid_moves_the_expected_bytes():
    """Two matmuls, the first split by columns, the second by rows: one forward all-reduce along the second
    axis.
    """
    x, one, two = f32(8, 6), f32(6, 8, seed=1), f32(8, 6, seed=2)

    def body(x):
        with grid():
            x = cast(x, parallel_distribution=["S(0)", "B"])
            a = flow.get_variable("a", one.shape, initializer=constant(one),
                                  parallel_distribution=["B", "S(1)"])
            b = flow.get_variable("b", two.shape, initializer=constant(two),
                                  parallel_distribution=["B", "S(0)"])
            y = flow.matmul(flow.math.tanh(flow.matmul(x, a, name="first")), b, name="second")
            return cast(y, parallel_distribution=["S(0)", "B"], name="sum")

    found, _, made = run_steps(4, body, x, steps=1, type="predict")
    np.testing.assert_allclose(found[0], np.tanh(x @ one) @ two, rtol=1e-4, atol=1e-5)
    by_name = {r.name: r for r in rows(made) if r.node is not None}
    assert by_name["first"].signature == "a=(S(0), B), b=(B, S(1)) -> y=(S(0), S(1))"
    assert by_name["second"].signature == "a=(S(0), S(1)), b=(B, S(0)) -> y=(S(0), P)"
    assert by_name["first"].bytes == by_name["second"].bytes == 0
    assert by_name["sum"].signature == "(S(0), P) -> (S(0), B)"
    # 2 groups of 2, each sums half of the rows
    assert by_name["sum"].bytes == 2 * 2 * (2 - 1) * (8 // 2 * 6) * 4


def test_lenet_on_a_grid():
    x, labels = f32(10, 1, 12, 12), np.arange(10, dtype=np.int32) % 5

    def lenet(hierarchy):
        def body(x, labels):
            with grid(hierarchy):
                x = cast(x, parallel_distribution=["S(0)", "B"])
                y = flow.layers.conv2d(x, 4, 3, padding="SAME", activation=flow.nn.relu, name="conv1",
                                       kernel_initializer=constant(f32(4, 1, 3, 3, seed=1)))
                y = flow.nn.max_pool2d(y, 2, 2, "VALID")
                y = cast(y, parallel_distribution=["S(0)", "S(1)"])
                y = flow.nn.relu(flow.layers.batch_normalization(y, axis=1, name="bn"))
                y = flow.reshape(cast(y, parallel_distribution=["B", "S(0)"]), [10, -1])
                y = flow.layers.dense(y, 9, flow.nn.relu, name="fc1", model_distribute=D.split(0),
                                      kernel_initializer=constant(f32(9, 144, seed=2) / 12))
                y = flow.layers.dense(y, 5, name="fc2", kernel_initializer=constant(f32(5, 9, seed=3)))
            loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(labels, y))
            flow.optimizer.SGD(constant_rate(0.05), momentum=0.9).minimize(loss)
            return loss, y
        return body

    returns = tuple[tp.Numpy, tp.Numpy]
    wanted = run_steps(1, lenet((1, 1)), x, labels, returns=returns)
    found = run_steps(4, lenet(GRID), x, labels, returns=returns)
    for (a, b), (c, d) in zip(found[0], wanted[0], strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-4)
        np.testing.assert_allclose(b, d, rtol=1e-3, atol=1e-4)
    assert_close_runs(([], found[1]), ([], wanted[1]), rtol=1e-3)
    fc1 = next(r for r in rows(found[2]) if r.name == "fc1-matmul")
    assert fc1.reads[1].sbp == ("S0", "S0"), "split(0) holds along both axes"


# ---- placements
def test_the_innermost_hierarchy_is_used():
    x = f32(12, 6)

    def body(x):
        with flow.scope.placement("cpu", "0:0-5", hierarchy=(2, 3)):
            a = flow.math.relu(x, name="a")
            with flow.scope.placement("cpu", "0:0-5", [3, 2]):
                b = flow.math.exp(a, name="b")
                assert flow.scope.current_scope().placement.hierarchy == (3, 2)
            c = flow.math.negative(b, name="c")
        return flow.math.square(c, name="d")

    found, _, made = run_steps(6, body, x, steps=1, type="predict")
    np.testing.assert_allclose(found[0], np.square(np.exp(np.maximum(x, 0))), rtol=1e-5)
    assert {r.name: r.place.hierarchy for r in rows(made) if r.name in "abcd" and r.node is not None} == {
        "a": (2, 3), "b": (3, 2), "c": (2, 3), "d": (6,)}


@pytest.mark.parametrize("sbp", [["S(0)", "B"], ["B", "S(0)"], ["S(1)", "S(0)"]], ids=str)
def test_grids_of_equally_many_devices_are_distinguished(sbp):
    """One value with one SBP has different parts on 2x3 and on 3x2."""
    x = f32(12, 7)

    def body(x):
        x, total = flow.math.tanh(x), 0
        for hierarchy in grids:
            with grid(hierarchy):
                total = flow.math.exp(cast(x, parallel_distribution=sbp)) + total * 2
        return total

    grids = [(2, 3), (3, 2), (6, 1), (1, 6), (2, 2)]
    found, _, made = run_steps(6, body, x, steps=1, type="predict")
    np.testing.assert_allclose(found[0], 31 * np.exp(np.tanh(x)), rtol=1e-5)
    assert [r.place.hierarchy for r in rows(made, "exp")] == grids
    assert all(r.reads[0].sbp == r.makes[0].sbp == tuple(s.replace("(", "").replace(")", "") for s in sbp)
               for r in rows(made, "exp"))


def test_the_default_placement_may_be_a_grid():
    config = flow.function_config()
    config.default_placement_scope(grid())
    x, w = f32(8, 6), f32(6, 5, seed=1)

    def body(x):
        v = flow.get_variable("w", w.shape, initializer=constant(w))
        loss = flow.math.reduce_mean(flow.math.square(flow.matmul(x, v, name="mm")))
        clip = flow.optimizer.grad_clipping.by_global_norm(0.1)
        flow.optimizer.SGD(constant_rate(0.1), grad_clipping=clip).minimize(loss)
        return loss

    wanted = run_steps(1, body, x)
    found = run_steps(4, body, x, config=config)
    assert_close_runs(found, wanted)
    assert {r.place.hierarchy for r in rows(found[2]) if r.node
            and r.reads} == {GRID}, "updates and clipping too"
    assert str(grid()) == "cpu 0:0, 0:1, 0:2, 0:3 as (2, 2)"
    assert next(r for r in rows(found[2]) if r.name == "mm").reads[0].sbp == ("S0", "S0")


def test_pipelines_of_grids_and_rows():
    """Two stages on separate devices, then a row of all."""
    x, w = f32(9, 6), f32(6, 6, seed=1)

    def body(devices):
        def f(x):
            places = [("0:0-3", (2, 2)), ("0:4-7", (2, 2)),
                      ("0:0-7", None)] if devices > 1 else [("0:0", (1, 1))] * 2 + [
                          ("0:0", None)]
            for i, (ids, hierarchy) in enumerate(places):
                with flow.scope.placement("cpu", ids, hierarchy):
                    wish = {} if hierarchy is None else dict(parallel_distribution=["B", "S(1)"])
                    v = flow.get_variable(f"w{i}", w.shape, initializer=constant(w / 3), **wish)
                    x = flow.math.tanh(flow.matmul(x, v))
            loss = flow.math.reduce_sum(x)
            flow.optimizer.SGD(constant_rate(0.01)).minimize(loss)
            return loss
        return f

    assert_close_runs(run_steps(8, body(8), x), run_steps(1, body(1), x))


def test_micro_batches_on_a_grid():
    x, w = f32(16, 6), f32(6, 5, seed=1)

    def body(hierarchy):
        def f(x):
            with grid(hierarchy):
                v = flow.get_variable("w", w.shape, initializer=constant(w),
                                      parallel_distribution=["B", "S(1)"])
                y = cast(flow.matmul(x, v), parallel_distribution=["S(0)", "B"])
            loss = flow.math.reduce_mean(flow.math.square(y))
            flow.optimizer.SGD(constant_rate(0.1)).minimize(loss)
            return loss
        return f

    config = flow.function_config()
    config.train.num_gradient_accumulation_steps(2)
    assert_close_runs(run_steps(4, body(GRID), x, config=config),
                      run_steps(1, body((1, 1)), x, config=config))


def test_a_variable_distribution_on_a_row():
    """parallel_distribution for grids applies to grids; on a row it is not used."""
    x, w = f32(8, 6), f32(6, 8, seed=1)

    def body(x):
        with grid():
            v = flow.get_variable("w", w.shape, initializer=constant(w),
                                  parallel_distribution=["S(0)", "S(1)"])
            assert v.unique_name == "w/out:S0_S1" and v.split_axis is None
            a = flow.matmul(x, v)
        return a + flow.matmul(x, v, name="row")

    found, _, made = run_steps(4, body, x, steps=1, type="predict")
    np.testing.assert_allclose(found[0], 2 * x @ w, rtol=1e-4, atol=1e-5)
    assert next(r for r in rows(made) if r.name == "row").place.hierarchy == (4,)


# ---- random programs
GRIDS = [Place((0, 1, 2, 3), (2, 2)), Place((3, 1, 0, 2), (2, 2)), Place((0, 1, 2, 3, 4, 5), (2, 3)),
         Place((5, 4, 3, 2, 1, 0), (3, 2)), Place((1, 2, 3, 4), (4, 1)), Place((0, 1, 2, 3), (1, 2, 2))]
SBP = ["B", "P", "S0", "S1"]


@st.composite
def casts(draw):
    """Draw (sbp, placement, gradient mode)."""
    place = draw(st.sampled_from(GRIDS))
    sbp = tuple(draw(st.sampled_from(SBP)) for _ in place.hierarchy)
    back = draw(st.sampled_from(["restore", "auto", "manual"]))
    if back != "manual":
        return sbp, place, back
    there = draw(st.sampled_from(GRIDS))
    return sbp, place, (tuple(draw(st.sampled_from(SBP)) for _ in there.hierarchy), there)


@given(expression(), st.integers(0, 2**31), st.sampled_from([(6, 6), (8, 8)]), st.lists(casts(), max_size=3),
       st.lists(st.sampled_from([None, (0, 1, 2), (4,), *GRIDS]), min_size=1, max_size=5))
def test_programs_with_gradients(steps, seed, shape, forced, places):
    assume(all(layout(s, p).fits(shape) for s, p, _ in forced))
    assume(all(layout(b[0], b[1]).fits(shape) for _, _, b in forced if isinstance(b, tuple)))
    rng = np.random.default_rng(seed)
    x, b = rng.standard_normal(shape), rng.standard_normal(shape[1])

    def make(devices):
        g = Graph("law")
        gx, gb = g.input("x", Spec(x.shape, flow.float64)), g.input("b", Spec(b.shape, flow.float64))
        with g.building():
            y = gx
            for n, (sbp, place, back) in enumerate(forced):
                grad_sbp, grad_place = back if isinstance(back, tuple) else (None, None)
                y = HINT(y * 1.0, sbp=sbp, place=place, grad_sbp=grad_sbp, grad_place=grad_place, forced=True,
                         restore=f"cast{n}" if back == "restore" else None)
            out = evaluate(steps, y, gb)
        for i, node in enumerate(g.nodes):
            node.placement = places[i % len(places)]
        g.outputs = list(out)
        g.outputs += [d for d in gradients(g, [out[0]], [gx, gb]) if d is not None]
        return g, spreading.spread(g, devices) if devices > 1 else None

    want = run_graph(make(1)[0], [x, b])
    g, s = make(6)
    for a, c in zip(run_graph(g, [x, b]), want, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(c).max(initial=0)),
                                   err_msg=s.describe())
    assert make(6)[1].describe() == s.describe()


def test_a_wrong_cache_key_is_detected(monkeypatch):
    """Cache keys without the hierarchy are detected by the check of the graph if it is enabled, else by the
    values.
    """
    key = spreading.key_of
    monkeypatch.setattr(spreading, "key_of", lambda at: (key(at)[0], (at.k,)) if key(at) != spreading.WHOLE
                        else key(at))
    with pytest.raises((AssertionError, GraphError)):
        test_grids_of_equally_many_devices_are_distinguished(["S(0)", "B"])


# ---- errors
def check_inside_job(check, devices=4, **options):
    """Run `check(x)` in the body of a job, on a 2x2 grid."""
    def body(x):
        with grid() if devices == 4 else grid((devices,)):
            check(x)
        return x
    run_steps(devices, body, f32(4, 6), steps=1, type="predict", **options)


@pytest.mark.parametrize("given, words", [
    (["S(0)"], ["2 of them", "grid of 2 axes", "['S(0)']", '["S(0)", "B"]']),
    (["S(0)", "B", "B"], ["2 of them"]), (None, ["2 of them", "None"]), (7, ["2 of them"]),
    ([], ["2 of them"]),
    (["S0", "B"], ["S0", '"S(axis)"']), (["S(-1)", "B"], ["S(-1)"]), (["S(0)", 3], ["not a layout"]),
    (["S(0)", "Pmax"], ["Pmax"]), (["S(0)", D.auto()], ["not a layout"]),
    (["B", "S(2)"], ["splits a missing axis", "S(2)", "(4, 6)"])], ids=str)
def test_invalid_distributions(given, words):
    def check(x):
        with refused(ArgumentError, "hierarchical_parallel_cast: parallel_distribution", *words, at=False):
            cast(x, parallel_distribution=given)
        with refused(ArgumentError, "grad_parallel_distribution", *words, at=False):
            cast(x, parallel_distribution="B", grad_mode="manual", grad_parallel_distribution=given)
        if given is not None:
            with refused(ArgumentError, "get_variable: parallel_distribution", *words, at=False):
                flow.get_variable("w", (4, 6), initializer=constant(0), parallel_distribution=given)
    check_inside_job(check)


def test_a_variable_may_not_be_a_partial_sum():
    def check(x):
        with refused(ArgumentError, "get_variable: parallel_distribution", "['B', 'P']",
                     'a list of "B" or "S(axis)"', at=False):
            flow.get_variable("w", (4, 6), initializer=constant(0), parallel_distribution=["B", "P"])
    check_inside_job(check)


@pytest.mark.parametrize("hierarchy", [[2, 3], [], 4, [4.0], [0, 4], [-2, -2], "22", [True, 4]], ids=str)
def test_invalid_hierarchies(hierarchy):
    def check(x):
        for name, others in (("parallel_hierarchy", {}), ("grad_parallel_hierarchy", dict(
                grad_mode="manual", grad_parallel_distribution="B"))):
            with refused(CheckError, f"cast: {name}", "product is 4", repr(hierarchy), "(2, 2)", at=False):
                cast(x, parallel_distribution="B", **others, **{name: hierarchy})
    check_inside_job(check)
    with refused(AssertionError, "scope.placement: hierarchy", "product is 4", repr(hierarchy)):
        flow.scope.placement("cpu", "0:0-3", hierarchy)


def test_wrong_modes():
    def check(x):
        for mode in ("keep", 1, "Restore"):
            with refused(ArgumentError, "grad_mode", repr(mode), '"restore"', at=False):
                cast(x, parallel_distribution="B", grad_mode=mode)
        for more in (dict(grad_parallel_hierarchy=[4]), dict(grad_parallel_distribution=["B", "B"])):
            with refused(ArgumentError, "given twice", 'grad_mode="manual"', at=False):
                cast(x, parallel_distribution="B", **more)
    check_inside_job(check)


def test_casts_outside_of_jobs():
    t = flow.tensor(f32(4, 6))
    with refused(UnsupportedError, "not a blob of a job", "to_global"):
        cast(t, [2, 2], ["S(0)", "B"])

    def check(x):
        with refused(UnsupportedError, "not a blob of a job", "ndarray", at=False):
            cast(np.zeros((4, 6)), [2, 2], ["S(0)", "B"])
        with flow.scope.mirrored_view(), refused(UnsupportedError, "mirrored view", "consistent_view",
                                                 at=False):
            cast(x, [2, 2], ["S(0)", "B"])
    check_inside_job(check)


def test_parts_that_would_be_empty():
    made = None

    def body(x):
        with grid():
            return flow.math.exp(cast(x, parallel_distribution=["S(0)", "S(0)"], name="cut"))

    flow.config.cpu_device_num(4)
    made = job(body, f32(3, 6))
    with refused(JobBuildAndInferError, "cut", "(S(0), S(0)) on 0-3 (2x2)", "(3, 6)"):
        made(f32(3, 6))


def test_casts_accept_strings_and_hints():
    seen = []

    def check(x):
        for wish in (["S(0)", "B"], ("S(0)", "B"), [D.split(0), D.broadcast()]):
            seen.append(cast(x, parallel_distribution=wish).value.node.attrs)
        seen.append(cast(x, parallel_distribution="S(1)").value.node.attrs)
        assert cast(x, [4], "S(1)", "auto", name="mine").op_name == "mine"
    check_inside_job(check)
    sbps = [dict(zip(HINT.attrs, a))["sbp"] for a in seen]
    assert sbps == [("S0", "B")] * 3 + [("S1", "S1")]


def test_one_device_is_a_valid_grid():
    x = f32(4, 6)
    for sbp in itertools.product(["B", "S(0)", "P"], repeat=2):
        found, _, made = run_steps(1, lambda x, s=list(sbp): cast(x, [1, 1], s), x, steps=1, type="predict")
        np.testing.assert_array_equal(found[0], x)
        assert made.compiled.spread is None


@pytest.mark.parametrize("ids, needed", [("0:0-3", 4), ("0:1", 2), (["0:0", "0:2", "0:5"], 6),
                                         (["0:5", "0:1"], 6)])
def test_the_fix_for_missing_devices_states_the_needed_number(ids, needed):
    def body(x):
        with flow.scope.placement("cpu", ids):
            return flow.math.relu(x)

    with pytest.raises(JobBuildAndInferError, match="there is no device") as caught:
        run_steps(1, body, f32(4, 4), steps=1, type="predict")
    assert f"flow.config.cpu_device_num({needed})" in caught.value.fix
    run_steps(needed, body, f32(4, 4), steps=1, type="predict")
