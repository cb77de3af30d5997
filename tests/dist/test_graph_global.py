"""nn.Graph over global tensors: data, model, hybrid, and pipeline parallel, and ZeRO train like one device.

On virtual devices; on processes: python -m flowedu.distributed.launch --nproc_per_node 4 -m pytest <this
file>
"""
import numpy as np
import pytest

import flowedu as flow
from custom_ops import own_registry  # noqa: F401
from flowedu import nn
from flowedu.core.sbp.ranks import current, set_virtual_devices
from flowedu.errors import ArgumentError, FlowError
from flowedu.show.ranks import Memory

B = flow.sbp.broadcast
S0 = flow.sbp.split(0)
S1 = flow.sbp.split(1)
P = flow.sbp.partial_sum
STEPS = 4


PROCESSES = current().name == "mpi"


@pytest.fixture(autouse=True)
def devices(world):
    world(1)


def need(k):
    """Return k devices, or as many as there are processes."""
    if not PROCESSES:
        set_virtual_devices(k)
    elif current().size < k:
        pytest.skip(f"needs {k} ranks")


def placed(k, shape=None):
    need(k)
    return flow.placement("cpu", np.arange(k).reshape(shape or (k,)).tolist())


def memory(graph):
    """Return the planned memory of rank 0; zeros on processes with other ranks."""
    return graph.memory().get(0, Memory(0, 0, 0, 0))


def make_mlp():
    flow.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 4))


def convnet():
    flow.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(4, 8, 3, padding=1),
                         nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


class Train(nn.Graph):
    def __init__(self, model, optimizer, micro=1, **zero):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(micro)
        if zero:
            self.config.enable_zero(True, shard_min_size=8, **zero)

    def build(self, x, t):
        y = self.model(x)
        loss = self.loss(y, t)
        loss.backward()
        return loss, y


def batches(shape, classes=4):
    rng = np.random.default_rng(5)
    return [(rng.standard_normal(shape).astype(np.float32), rng.integers(0, classes,
                                                                         shape[0])) for _ in range(STEPS)]


def optimizer(model, rule):
    return flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) if rule == "sgd" else \
        flow.optim.Adam(model.parameters(), lr=0.01)


def state_values(model):
    return {n: t.numpy() for n, t in model.state_dict().items()}


def one_device(make, data, rule="sgd", micro=1):
    """Return losses, outputs, and the model after the steps."""
    model = make()
    graph = Train(model, optimizer(model, rule), micro)
    out = [[y.numpy() for y in graph(flow.tensor(x), flow.tensor(t))] for x, t in data]
    return [a.mean() for a, _ in out], [y for _, y in out], state_values(model)


def on_devices(model, data, give, rule="sgd", micro=1, **zero):
    """Do the same with a global model. give: (x, t) as arrays -> as global tensors."""
    graph = Train(model, optimizer(model, rule), micro, **zero)
    out = [[y.numpy() for y in graph(*give(x, t))] for x, t in data]
    return graph, ([a.mean() for a, _ in out], [y for _, y in out], state_values(model))


def assert_close_runs(got, want, rtol=3e-4):
    np.testing.assert_allclose(got[0], want[0], rtol=rtol)
    for a, b in zip(got[1], want[1]):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-4)
    assert got[2].keys() == want[2].keys()
    for n, a in want[2].items():
        np.testing.assert_allclose(got[2][n], a, rtol=rtol, atol=2e-5, err_msg=n)


def spread(model, placement, sbp):
    """Convert every parameter and buffer to a global tensor of the same logical value. sbp: {suffix of a
    name: sbp}, default B.
    """
    whole = (B,) * len(placement.hierarchy)
    for prefix, part in model.named_modules():
        for table in (part._parameters, part._buffers):
            for key, t in table.items():
                if t is not None:
                    wanted = next((s for end, s in sbp.items() if f"{prefix}.{key}".endswith(end)), whole)
                    table[key] = glob(t, placement, wanted, type(t))
    return model


def glob(t, placement, sbp, kind=flow.Tensor):
    made = flow.tensor(t.numpy(), placement=placement, sbp=sbp)
    return nn.Parameter(made) if kind is nn.Parameter else made


def giver(placement, x_sbp, t_sbp=None):
    return lambda x, t: (flow.tensor(x, placement=placement, sbp=x_sbp),
                         flow.tensor(t, placement=placement, sbp=t_sbp or x_sbp))


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_data_parallel(k, rule):
    data = batches((12, 6))
    want = one_device(make_mlp, data, rule)
    place = placed(k)
    graph, got = on_devices(spread(make_mlp(), place, {}), data, giver(place, S0), rule)
    assert_close_runs(got, want)
    gradients = sum(a.nbytes for a in got[2].values())
    assert graph.bytes <= 2 * (k - 1) * (gradients + 8)


@pytest.mark.parametrize("k", [2, 4])
def test_model_parallel(k):
    data = batches((12, 6))
    want = one_device(make_mlp, data)
    place = placed(k)
    plan = {"0.weight": S0, "0.bias": S0, "2.weight": S1}
    graph, got = on_devices(spread(make_mlp(), place, plan), data, giver(place, B))
    assert_close_runs(got, want)
    assert memory(graph).parameters < sum(a.nbytes for a in got[2].values())


def test_hybrid():
    data = batches((12, 6))
    want = one_device(make_mlp, data)
    place = placed(4, (2, 2))
    plan = {"0.weight": (B, S0), "0.bias": (B, S0), "2.weight": (B, S1)}
    graph, got = on_devices(spread(make_mlp(), place, plan), data, giver(place, (S0, B)))
    assert_close_runs(got, want)
    assert graph.model.to(nn.Module)[0].weight.sbp == (B, S0)


@pytest.mark.parametrize("k", [2, 4])
def test_convolutions(k):
    data = batches((8, 1, 8, 8))
    want = one_device(convnet, data)
    place = placed(k)
    _, got = on_devices(spread(convnet(), place, {}), data, giver(place, S0))
    assert_close_runs(got, want, rtol=2e-3)


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("rule, micro", [("adam", 1), ("sgd", 2)])
def test_zero(stage, rule, micro):
    data = batches((12, 6))
    want = one_device(make_mlp, data, rule, micro)
    place = placed(2)
    graph, got = on_devices(spread(make_mlp(), place, {}), data, giver(place, S0), rule, micro, stage=stage)
    assert_close_runs(got, want)
    assert graph.model.to(nn.Module)[0].weight.sbp == (S0,)
    plain, _ = on_devices(spread(make_mlp(), place, {}), data[:1], giver(place, S0), rule, micro)
    a, b = memory(plain), memory(graph)
    assert b.parameters + b.states <= 0.6 * (a.parameters + a.states)


class Stages(nn.Module):
    """Three layers in two stages."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return self.second(self.first(x))


def stages():
    m = make_mlp()
    return Stages(nn.Sequential(m[0], m[1]), nn.Sequential(m[2], m[3], m[4]))


@pytest.mark.parametrize("how", ["set_stage", "to_global"])
@pytest.mark.parametrize("each, micro", [(1, 1), (1, 4), (2, 2)])
def test_pipeline(how, each, micro):
    data = batches((16, 6))
    want = one_device(stages, data, micro=micro)
    need(2 * each)
    p0 = flow.placement("cpu", list(range(each)))
    p1 = flow.placement("cpu", list(range(each, 2 * each)))
    model = stages()
    spread(model.first, p0, {})
    spread(model.second, p1, {})

    class Piped(Train):
        def __init__(self, *args):
            super().__init__(*args)
            if how == "set_stage":
                self.model.first.to(nn.graph.GraphModule).set_stage(0, p0)
                self.model.second.to(nn.graph.GraphModule).set_stage(1, p1)

        def build(self, x, t):
            y = self.model.first(x)
            y = self.model.second(y if how == "set_stage" else y.to_global(placement=p1, sbp=S0))
            loss = self.loss(y, t)
            loss.backward()
            return loss, y

    graph = Piped(model, optimizer(model, "sgd"), micro)
    out = []
    for x, t in data:
        x, t = flow.tensor(x, placement=p0, sbp=S0), flow.tensor(t, placement=p1, sbp=S0)
        out.append([y.numpy() for y in graph(x, t)])
    assert_close_runs(([a.mean() for a, _ in out], [y for _, y in out], state_values(model)), want)
    assert graph(x, t)[0].placement == p1
    view = graph._compiled.spread
    for rank, g in view.ranks.items():
        other = "second" if rank < each else "first" if rank < 2 * each else "model"
        assert not any(other in n for n in g.graph.variables)
    if micro == 4 and 0 in view.ranks:  # 1F1B: the first of two stages starts two micro-batches
        turns = [view.tracer.passes.get(n) for n in view.inferred.graph.nodes]
        names = {n.name: t for n, t in zip(view.inferred.graph.nodes, turns) if t is not None}
        first = list(dict.fromkeys(names[n.name] for n in view.ranks[0].graph.nodes if n.name in names
                                   and n.op.name == "matmul"))
        assert first == [(0, False), (1, False), (0, True), (2, False), (1, True), (3, False), (2, True),
                         (3, True)]


def test_layouts_are_known_in_build():
    place = placed(2)
    seen = {}

    class G(nn.Graph):
        def build(self, x, w):
            y = flow.matmul(x, w)
            seen.update(sbp=y.sbp, placement=y.placement, is_global=y.is_global)
            z = y.to_global(sbp=B)
            seen.update(z=z.sbp)
            return y, z, x.sum()

    x, w = flow.ones(4, 6, placement=place, sbp=S0), flow.ones(6, 4, placement=place, sbp=B)
    y, z, s = G()(x, w)
    assert seen == dict(sbp=(S0,), placement=place, is_global=True, z=(B,))
    assert y.sbp == (S0,) and z.sbp == (B,) and s.sbp == (P,) and float(s.numpy()) == 24
    np.testing.assert_array_equal(z.numpy(), np.full((4, 4), 6.0))


def test_local_and_global_do_not_mix():
    place = placed(2)

    class G(nn.Graph):
        def build(self, x, w):
            return x + w

    with pytest.raises(ArgumentError, match="inconsistent attributes") as e:
        G()(flow.ones(4, placement=place, sbp=S0), flow.tensor([1.0, 2.0, 3.0, 4.0]))
    assert "global, local" in str(e.value) and "test_graph_global.py" in str(e.value)


def test_two_placements_in_one_op():
    need(4)
    a, b = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])

    class G(nn.Graph):
        def build(self, x, w):
            return x + w

    with pytest.raises(FlowError, match="at least two placements") as e:
        G()(flow.ones(4, placement=a, sbp=S0), flow.ones(4, placement=b, sbp=S0))
    assert "test_graph_global.py" in str(e.value)


def test_inputs_must_keep_their_layout():
    place = placed(2)

    class G(nn.Graph):
        def build(self, x):
            return x * 2

    g = G()
    g(flow.ones(4, placement=place, sbp=S0))
    with pytest.raises(FlowError, match="another layout than in the first call"):
        g(flow.ones(4, placement=place, sbp=B))


@pytest.mark.skipif(PROCESSES, reason="the whole job would end")
def test_an_error_on_one_rank_ends_the_step():
    place = placed(2)

    @flow.custom_op("fails_on_two", infer=lambda x: x.shape, sbp="a->a", replace=True)
    def fails_on_two(x):
        if x.shape[0] == 2:
            raise ValueError("two rows")
        return x + 0

    class G(nn.Graph):
        def build(self, x):
            return fails_on_two(x).sum() + 1

    with pytest.raises(ValueError, match="two rows"):
        G()(flow.ones(5, placement=place, sbp=S0))


def test_automatic():
    """It moves fewer bytes than any manual plan, and trains equally."""
    data = batches((12, 6))
    want = one_device(make_mlp, data, "adam")
    bills = {}
    place = placed(4)
    for name, plan, x in [("data", {}, S0), ("model", {"0.weight": S0, "0.bias": S0, "2.weight": S1}, B)]:
        bills[name] = on_devices(spread(make_mlp(), place, plan), data, giver(place, x), "adam")[0].bytes
    model = spread(make_mlp(), place, {})
    graph = Train(model, optimizer(model, "adam"))
    graph.config.enable_auto_parallel(True)
    graph.config.enable_auto_parallel_ignore_user_sbp_config(True)
    give = giver(place, S0)
    out = [[y.numpy() for y in graph(*give(x, t))] for x, t in data]
    assert_close_runs(([a.mean() for a, _ in out], [y for _, y in out], state_values(model)), want)
    found = graph._compiled.spread.found
    assert found.exact and found.best.cost < found.greedy.cost
    assert graph.bytes == found.best.bytes < bills["data"]
    assert found.greedy.bytes == bills["data"]
    assert "unknowns" in graph.explain() and "greedy" in graph.explain()
    assert any(p.sbp != (B,) for p in model.parameters())


def test_state_is_loaded_into_another_layout(tmp_path):
    """Saved under ZeRO on two devices, loaded data-parallel on four: the next steps are equal."""
    data = batches((12, 6))
    want = one_device(make_mlp, data, "adam")
    place = placed(2)
    model = spread(make_mlp(), place, {})
    graph = Train(model, optimizer(model, "adam"), stage=2)
    for x, t in data[:2]:
        graph(*giver(place, S0)(x, t))
    state = graph.state_dict()
    assert state["model.0.weight-m"].sbp == (S0,)
    kept = {n: t.numpy().copy() for n, t in state.items() if isinstance(t, flow.Tensor)}
    params = {n: t.numpy().copy() for n, t in state["model"].items()}
    place = placed(4)
    model = spread(make_mlp(), place, {})
    fresh = Train(model, optimizer(model, "adam"))
    fresh.load_state_dict({"model": {n: flow.tensor(a, placement=place, sbp=B) for n, a in params.items()},
                           "loss": {}, **{n: flow.tensor(a) for n, a in kept.items()}})
    losses = [float(fresh(*giver(place, S0)(x, t))[0].numpy()) for x, t in data[2:]]
    np.testing.assert_allclose(losses, want[0][2:], rtol=3e-4)


def test_schedules_clipping_and_eager_writes():
    """The rate follows its schedule, norms are those of whole gradients, and writes between steps take
    effect.
    """
    data = batches((12, 6))

    def train(give, model):
        opt = flow.optim.SGD([{"params": list(model.parameters()), "clip_grad_max_norm": 0.5,
                               "clip_grad_norm_type": 2.0}],
                             lr=0.1, momentum=0.9)
        graph = Train(model, opt)
        graph._optimizers.clear()
        graph.add_optimizer(opt, lr_sch=flow.optim.lr_scheduler.StepLR(opt, 2, 0.5))
        losses = []
        for i, (x, t) in enumerate(data):
            losses.append(float(graph(*give(x, t))[0].numpy()))
            if i == 1:
                with flow.no_grad():
                    for p in model.parameters():
                        p.mul_(0.5)
        return losses

    want = train(lambda x, t: (flow.tensor(x), flow.tensor(t)), make_mlp())
    for plan, sbp in [({}, S0), ({"0.weight": S0, "0.bias": S0, "2.weight": S1}, B)]:
        place = placed(2)
        np.testing.assert_allclose(train(giver(place, sbp), spread(make_mlp(), place, plan)), want, rtol=3e-4)


def test_an_update_that_needs_whole_parameters():
    place = placed(2)
    model = spread(make_mlp(), place, {"0.weight": S0})
    graph = Train(model, flow.optim.LAMB(model.parameters(), lr=0.01))
    with pytest.raises(FlowError, match="S\\(0\\)") as e:
        graph(*giver(place, B)(*batches((12, 6))[0]))
    assert "norm" in str(e.value)


def test_print_report_and_drawing(tmp_path):
    place = placed(2)
    model = spread(make_mlp(), place, {})
    graph = Train(model, optimizer(model, "sgd"))
    graph(*giver(place, S0)(*batches((12, 6))[0]))
    text = repr(graph)
    assert "sbp=(S(0))" in text and "ranks=[0, 1]" in text and "sbp=(P)" in text
    said = graph.report()
    assert "moved in one step" in said and f"rank {current().rank}" in said and "fuse" in said
    assert "all-reduce" in graph.explain() and f"{graph.bytes:,} bytes" in graph.explain()
    for what in ("graph", "optimized"):
        drawn = graph.draw(tmp_path / f"{what}.svg", what).read_text(encoding="utf-8")
        assert "all_reduce" in drawn or what == "graph" or current().rank not in place.devices
    with pytest.raises(FlowError, match="cannot be saved"):
        flow.save(graph, tmp_path / "model")
    profile = graph.profile(*giver(place, S0)(*batches((12, 6))[0]))
    assert "rank 1: " in profile and "all_reduce" in profile
    with pytest.raises(FlowError, match="no global tensors"):
        local = Train(make_mlp(), flow.optim.SGD(make_mlp().parameters(), lr=0.1))
        local._optimizers.clear()
        local.build = lambda x, t: x
        local(flow.ones(2), flow.ones(2))
        local.memory()


def test_dropout_equals_one_device():
    """Masks are drawn whole, so they are the same on any number of devices."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            flow.manual_seed(1)
            self.a, self.drop, self.b = nn.Linear(6, 24), nn.Dropout(0.5), nn.Linear(24, 4)

        def forward(self, x):
            return self.b(self.drop(self.a(x)))

    data = batches((12, 6))
    flow.manual_seed(11)
    want = one_device(Net, data)
    place = placed(2)
    model = spread(Net(), place, {})
    _, got = on_devices(model, data, giver(place, S0))
    assert_close_runs(got, want)


@pytest.mark.parametrize("stage", [0, 3])
def test_threads_that_are_ranks(stage):
    """SPMD: every thread builds the graph and runs one rank."""
    data = batches((12, 6))
    want = one_device(make_mlp, data)

    def program():
        place = flow.placement.all("cpu")
        model = spread(make_mlp(), place, {})
        return on_devices(model, data, giver(place, S0), **({"stage": stage} if stage else {}))[1]

    if PROCESSES:
        pytest.skip("ranks are processes here")
    for got in flow.distributed.spawn(program, 2):
        assert_close_runs(got, want)


def test_watched_values_are_logical_values():
    place = placed(2)
    seen = {}

    class G(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            y = self.model(x)
            flow.watch(y, lambda a: seen.update(y=a.numpy()))
            return y.sum()

    model = spread(make_mlp(), place, {})
    x = batches((12, 6))[0][0]
    G(model)(flow.tensor(x, placement=place, sbp=S0))
    np.testing.assert_allclose(seen["y"], make_mlp()(flow.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_a_local_graph_requires_local_inputs():
    place = placed(2)

    class G(nn.Graph):
        def build(self, x):
            return x * 2

    g = G()
    g(flow.ones(4))
    for where in (place, flow.placement("cpu", [0])):
        with pytest.raises(FlowError, match="is a global tensor"):
            g(flow.ones(4, placement=where, sbp=B))


@pytest.mark.parametrize("parameters", [False, True])
def test_automatic_in_a_pipeline(parameters):
    """Two stages of two ranks: each chooses separately, and layouts requested by to_global are kept."""
    data = batches((16, 6))
    want = one_device(stages, data, micro=2)
    need(4)
    p0, p1 = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
    model = stages()
    spread(model.first, p0, {})
    spread(model.second, p1, {})
    seen = []

    class Piped(Train):
        def build(self, x, t):
            y = self.model.first(x).to_global(placement=p1, sbp=B)
            seen.append(y.sbp)
            y = self.model.second(y)
            loss = self.loss(y, t)
            loss.backward()
            return loss, y

    graph = Piped(model, optimizer(model, "sgd"), 2)
    graph.config.enable_auto_parallel(True)
    graph.config.enable_auto_parallel_ignore_user_sbp_config(parameters)
    out = []
    for x, t in data:
        x, t = flow.tensor(x, placement=p0, sbp=S0), flow.tensor(t, placement=p1, sbp=S0)
        out.append([y.numpy() for y in graph(x, t)])
    assert_close_runs(([a.mean() for a, _ in out], [y for _, y in out], state_values(model)), want)
    found = graph._compiled.spread.found
    assert set(seen) == {(B,)} and found.best.cost <= found.greedy.cost
    assert parameters or all(p.sbp == (B,) for p in model.parameters())


@pytest.mark.parametrize("stage", [1, 3])
def test_automatic_with_zero(stage):
    data = batches((12, 6))
    want = one_device(make_mlp, data)
    place = placed(2)
    model = spread(make_mlp(), place, {})
    graph = Train(model, optimizer(model, "sgd"), stage=stage)
    graph.config.enable_auto_parallel(True)
    out = [[y.numpy() for y in graph(*giver(place, S0)(x, t))] for x, t in data]
    assert_close_runs(([a.mean() for a, _ in out], [y for _, y in out], state_values(model)), want)
    assert graph._compiled.spread.found.best.bytes == graph.bytes and model[0].weight.sbp == (S0,)


@pytest.mark.parametrize("count, micro", [(3, 4), (4, 8), (4, 2)])
def test_every_stage_runs_in_1f1b_order(count, micro):
    """Of s stages, the i-th starts s - i micro-batches; then backward and forward passes alternate."""
    need(count)
    flow.manual_seed(3)
    places = [flow.placement("cpu", [i]) for i in range(count)]
    parts = [spread(nn.Linear(6, 6), p, {}) for p in places]

    class G(nn.Graph):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(parts)
            self.add_optimizer(flow.optim.SGD(self.parts.parameters(), lr=0.1))
            self.config.set_gradient_accumulation_steps(micro)

        def build(self, x):
            for i, part in enumerate(parts):
                x = part(x.to_global(placement=places[i]) if i else x).relu()
            loss = x.sum()
            loss.backward()
            return loss

    graph = G()
    graph(flow.ones(16, 6, placement=places[0], sbp=B))
    view = graph._compiled.spread
    turn = {n.name: view.tracer.passes.get(n) for n in view.inferred.graph.nodes}
    for i, g in view.ranks.items():
        if i < count:
            order = list(dict.fromkeys(turn[n.name] for n in g.graph.nodes if n.op.name == "matmul"
                                       and turn.get(n.name)))
            alive = best = 0
            for _, backward in order:
                alive += -1 if backward else 1
                best = max(best, alive)
            assert len(order) == 2 * micro and best == min(count - i, micro), order


@pytest.mark.parametrize("micro", [1, 2, 4])
def test_a_stage_that_is_used_twice(micro):
    """The data goes to the second stage, back, and on again: not a strict pipeline, but the result is
    correct.
    """
    def layers():
        flow.manual_seed(4)
        return nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)])

    class U(Train):
        def __init__(self, *args):
            super().__init__(*args)
            self.places = None

        def build(self, x, t):
            def move_to_stage(x, i):
                return x.to_global(placement=self.places[i]) if self.places else x

            a = self.model[0](x).relu()
            b = self.model[1](move_to_stage(a, 1)).relu()
            y = self.model[2](move_to_stage(b, 0) + a)
            loss = self.loss(y, t)
            loss.backward()
            return loss, y

    data = batches((8, 6))
    model = layers()
    graph = U(model, optimizer(model, "sgd"), micro)
    out = [[y.numpy() for y in graph(flow.tensor(x), flow.tensor(t))] for x, t in data]
    want = [a.mean() for a, _ in out], [y for _, y in out], state_values(model)
    need(2)
    model, places = layers(), [flow.placement("cpu", [0]), flow.placement("cpu", [1])]
    for part, i in zip(model, (0, 1, 0)):
        spread(part, places[i], {})
    graph = U(model, optimizer(model, "sgd"), micro)
    graph.places = places
    out = [[y.numpy() for y in graph(*giver(places[0], B)(x, t))] for x, t in data]
    assert_close_runs(([a.mean() for a, _ in out], [y for _, y in out], state_values(model)), want)
