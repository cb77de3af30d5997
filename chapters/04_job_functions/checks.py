"""What the exercises of chapter 4 must do."""
import numpy as np

import flowedu as flow
import flowedu.typing as tp
from flowedu.core.graph.memory import Buffer
from flowedu.core.graph.memory import place as planned
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.sbp import layout, local_shape
from flowedu.core.values.spec import Spec
from flowedu.learn.exercises import Wrong, expect

# a two-layer network and its gradient, as calls: (result, what it reads)
CALLS = [("h", ["x", "w1"]), ("r", ["h"]), ("y", ["r", "w2"]), ("dr", ["dy", "w2"]), ("dw2", ["dy", "r"]),
         ("dh", ["dr", "h"]), ("dw1", ["dh", "x"])]
LIVES = {"h": (0, 5), "r": (1, 4), "y": (2, 7), "dr": (3, 5), "dw2": (4, 7), "dh": (5, 6), "dw1": (6, 7)}
SIZES = {"h": 400, "r": 400, "y": 40, "dr": 400, "dw2": 160, "dh": 400, "dw1": 800}


def check_momentum_steps(f):
    def ask(call, gradients, rates, want, hint, **more):
        expect(f"momentum_steps({call})", np.array(f(gradients, rates, **more)), np.array(want), hint)

    ask("[[3.0]], [0.1]", [[3.0]], [0.1], [-0.3], "one step: m = -rate * g")
    ask("[[1, 2, 3, 6]], [0.1]", [[1.0, 2.0, 3.0, 6.0]], [0.1], [-0.3], "the mean of the loss goes down, not its sum")
    ask("[[1.0]] * 3, [0.1] * 3, momentum=0", [[1.0]] * 3, [0.1] * 3, [-0.1, -0.2, -0.3],
        "without momentum every step is -rate * g", momentum=0)
    gradients, rates = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32), [0.5, 0.5, 0.1, 0.1, 0.02, 0.02]
    ask("random gradients, falling rates", gradients.tolist(), rates,
        _trained(gradients, rates), "m = momentum * m - rate * g keeps the rates of the past inside m")


def _trained(gradients, rates):
    """What a job makes of it: d(w * x)/dw = x."""
    flow.clear_default_session()
    path = []
    rate = flow.optimizer.PiecewiseConstantScheduler(list(range(len(rates) - 1)), list(rates))

    @flow.global_function("train")
    def job(x: tp.Numpy.Placeholder((4,))) -> None:
        w = flow.get_variable("w", (1,), initializer=flow.constant_initializer(0))
        flow.optimizer.SGD(rate).minimize(w * x)

    for g in gradients:
        job(np.ascontiguousarray(g))
        path.append(float(flow.get_all_variables()["w"].numpy()[0]))
    flow.clear_default_session()
    return np.array(path)


def check_lifetimes(f):
    expect('lifetimes([("a", ["x"]), ("b", ["a"])], ["b"])', f([("a", ["x"]), ("b", ["a"])], ["b"]),
           {"a": (0, 1), "b": (1, 2)}, "x is an input; b is fetched after the last call, at step 2")
    expect('lifetimes([("a", ["x"]), ("b", ["x"])], ["b"])', f([("a", ["x"]), ("b", ["x"])], ["b"]),
           {"a": (0, 0), "b": (1, 2)}, "nobody reads a, but its kernel needs a place to write to")
    expect("lifetimes(a network and its gradient)", f(CALLS, ["y", "dw1", "dw2"]), LIVES,
           "h and r are read again by the gradient: they live long")


def check_most_alive(f):
    expect("most_alive({}, {})", f({}, {}), 0, "no results, no bytes")
    expect('most_alive({"a": 8, "b": 8}, {"a": (0, 0), "b": (1, 1)})', f({"a": 8, "b": 8}, {"a": (0, 0), "b": (1, 1)}), 8,
           "they never live together")
    expect('most_alive({"a": 8, "b": 8}, {"a": (0, 1), "b": (1, 1)})', f({"a": 8, "b": 8}, {"a": (0, 1), "b": (1, 1)}), 16,
           "at step 1 both live: the last step counts, too")
    want = max(sum(SIZES[n] for n, (a, b) in LIVES.items() if a <= s <= b) for s in range(8))
    expect("most_alive(a network and its gradient)", f(SIZES, LIVES), want, "add up the sizes at every step")


def check_place(f):
    cases = [({"a": 8, "b": 8}, {"a": (0, 0), "b": (1, 1)}), (SIZES, LIVES)]
    rng = np.random.default_rng(0)
    for _ in range(20):
        names = [f"v{i}" for i in range(rng.integers(2, 30))]
        first = rng.integers(0, 20, len(names))
        cases.append(({n: int(64 * rng.integers(1, 20)) for n in names},
                      {n: (int(a), int(a + rng.integers(0, 8))) for n, a in zip(names, first)}))
    mine = theirs = 0
    for sizes, lives in cases:
        offsets = f(dict(sizes), dict(lives))
        if set(offsets) != set(sizes):
            raise Wrong(f"place gave offsets to {sorted(offsets)}\n  not to {sorted(sizes)}")
        for a in sizes:
            for b in sizes:
                together = a < b and lives[a][0] <= lives[b][1] and lives[b][0] <= lives[a][1]
                if together and offsets[a] < offsets[b] + sizes[b] and offsets[b] < offsets[a] + sizes[a]:
                    raise Wrong(f"place({sizes}, {lives})\n  {a} lives at steps {lives[a]}, at bytes {offsets[a]} to "
                                f"{offsets[a] + sizes[a]}\n  {b} lives at steps {lives[b]}, at bytes {offsets[b]} to "
                                f"{offsets[b] + sizes[b]}\n  hint: they overlap; compare with all that live together")
            if offsets[a] < 0:
                raise Wrong(f"place put {a} at {offsets[a]}: the arena begins at 0")
        mine += max(offsets[n] + sizes[n] for n in sizes)
        rounded = {n: -(-s // 64) * 64 for n, s in sizes.items()}
        theirs += planned([Buffer(n, "temp", rounded[n], *lives[n]) for n in sizes])
    if mine > 1.05 * theirs:
        raise Wrong(f"correct, but your arenas take {mine:,} bytes together, flowedu's {theirs:,}\n  hint: place the "
                    "largest first, each as low as it fits, also into gaps between two others")


def check_fused(f):
    chain = [("m", ["x", "w"]), ("b", ["m", "bias"]), ("r", ["b"])]
    expect("fused(matmul, bias_add, relu)", f(chain, {"b", "r"}, ["r"]), [["m"], ["b", "r"]],
           "matmul is not elementwise; bias_add has one reader, relu")
    expect("fused(the same, bias_add fetched)", f(chain, {"b", "r"}, ["b", "r"]), [["m"], ["b"], ["r"]],
           "a result that is fetched must be written to memory")
    fork = [("a", ["x"]), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"])]
    expect("fused(a is read by b and by c, both by d)", f(fork, {"a", "b", "c", "d"}, ["d"]), [["a"], ["b", "c", "d"]],
           "a has two readers: in one kernel with one of them it would be missing for the other")
    square = [("a", ["x"]), ("b", ["a", "a"]), ("c", ["b"])]
    expect("fused(b = a * a)", f(square, {"a", "b", "c"}, ["c"]), [["a", "b", "c"]], "b reads a twice, but is one reader")


def check_spiral_jobs(f):
    batch = 200
    t = np.linspace(0.3, 1, batch // 2)
    arm = np.stack([t * np.cos(7 * t), t * np.sin(7 * t)], axis=1)
    points = np.concatenate([arm, -arm]).astype(np.float32) * 2
    labels = np.repeat([0, 1], batch // 2).astype(np.int32)
    threads = flow.get_num_threads()
    flow.clear_default_session()
    flow.random.seed(0)
    flow.set_num_threads(1)                         # such small jobs lose more by sharing out than they gain
    try:
        train, read = f(batch)
        before = read(points)
        expect("read(points).shape", before.shape, (batch, 2), "two logits per point")
        loss = train(points, labels)
        expect("train(points, labels).shape", loss.shape, (batch,), "return the losses as they are, one per point")
        only_read = [n for n in read.context.graph.variables if n not in train.context.graph.variables]
        if only_read:
            raise Wrong(f"read has variables that train does not have: {only_read}\n  hint: give the layers of both jobs "
                        "the same names; calling one Python function in both bodies does it")
        for _ in range(1499):
            train(points, labels)
        right = (read(points).argmax(axis=1) == labels).mean()
        if right < 0.95:
            raise Wrong(f"{right:.0%} of the points are right after 1,500 steps\n  hint: weights that start at zero all "
                        "learn the same; one layer draws only straight lines; a rate of 0.01 suits Adam")
    finally:
        flow.set_num_threads(threads)
        flow.random.seed(None)
        flow.clear_default_session()


def check_replay(f):
    """A job with a list among its arguments, a constant tuple, and a call of two results; on two sizes."""
    flow.clear_default_session()
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("predict", config)
    def job(x: tp.ListNumpy.Placeholder((6, 4)), y: tp.ListNumpy.Placeholder((6, 4))) -> tp.ListNumpy:
        both = flow.concat([x, y * 3.0], axis=1)
        halves = flow.reshape(both, [-1, 2, 4])
        values, _ = flow.nn.moments(halves, axes=[1])
        return flow.transpose(values, perm=(1, 0))

    try:
        job([np.zeros((6, 4), np.float32)], [np.zeros((6, 4), np.float32)])
        calls, inputs = job.context.calls, list(job.context.graph.inputs.values())
        for rows in (6, 2):
            rng = np.random.default_rng(rows)
            x, y = (rng.integers(-9, 9, (rows, 4)).astype(np.float32) for _ in range(2))
            given = dict(zip(inputs, map(flow.tensor, (x, y))))
            found = f(calls, dict(given))
            expect("set(known) <= set(replay(calls, known))", set(given) <= set(found), True, "keep what was known")
            missing = [n for call in calls for v, n in zip(call.results, call.labels) if v not in found]
            expect("the results that replay(calls, known) lacks", missing, [], "a call may have several results")
            want = ((x + 3 * y) / 2).T
            expect(f"replay(calls, known) with {rows} rows: the last result", found[calls[-1].results[0]].numpy(), want,
                   "values may be inside of lists; constants stay as they are, -1 included")
    finally:
        flow.clear_default_session()


LAYOUTS = ("B", "P", "S0", "S1")


def check_local_shapes(f):
    expect('local_shapes((12, 8), "S0", 2)', f((12, 8), "S0", 2), [(6, 8), (6, 8)], "S0 cuts along axis 0")
    expect('local_shapes((5, 8), "S0", 3)', f((5, 8), "S0", 3), [(2, 8), (2, 8), (1, 8)], "the first have one more")
    expect('local_shapes((12, 8), "P", 2)', f((12, 8), "P", 2), [(12, 8)] * 2, "a part of a sum is as large as the sum")
    expect('local_shapes((12,), "S1", 2)', f((12,), "S1", 2), None, "there is no axis 1")
    expect('local_shapes((2, 8), "S0", 3)', f((2, 8), "S0", 3), None, "the third device would get nothing")
    for shape in ((7, 10), (3, 4, 11)):
        for sbp in LAYOUTS:
            for k in (1, 2, 3):
                expect(f"local_shapes({shape}, {sbp!r}, {k})", f(shape, sbp, k),
                       [local_shape(sbp, shape, k, i) for i in range(k)], "only the split axis gets smaller")


def check_bytes_moved(f):
    hints = {("S", "B"): "everybody sends its part to the k - 1 others", ("P", "S"): "k - 1 pieces for each part",
             ("P", "B"): "first to parts, then each part to k - 1 others",
             ("S", "S"): "a device keeps where its old rows and its new columns meet"}
    for shape, k in (((8, 8), 2), ((8, 8), 4), ((7, 10), 3), ((512, 784), 2)):
        for source in LAYOUTS:
            for target in LAYOUTS:
                devices = tuple(range(k))
                want = route(layout(source, devices), layout(target, devices), Spec(shape, flow.float32)).bytes
                expect(f"bytes_moved({shape}, {source!r}, {target!r}, {k})", f(shape, source, target, k), want,
                       hints.get((source[0], target[0]), "nothing has to be sent") if source != target else "it is there")
