"""Plans on cuda: eager on cuda, nn.Graph on cuda, and nn.Graph on the CPU agree for ops, random programs,
models, and training.
"""
import copy
import re

import numpy as np
import pytest
from hypothesis import given, settings
from no_kernel import NO_KERNEL

import flowedu as flow
from common import as_list
from flowedu import nn
from flowedu.cuda.plan import DeviceExecutor
from flowedu.errors import DeviceError, FlowError, KernelError, UnsupportedError
from graph import nets
from graph.making import batch, make_graph, make_mlp, train_step, twins
from graph.test_laws import CALLS, draw_call
from graph.test_models import MODELS
from laws.calls import assert_equal_up_to_rounding, label
from laws.programs import programs as random_programs
from laws.programs import start, take

F = flow.nn.functional
many = settings(max_examples=3 * settings().max_examples)


def to_cuda(x):
    return x.cuda()


def executor(g) -> DeviceExecutor:
    found = g._compiled.program.executor
    assert isinstance(found, DeviceExecutor)
    return found


def assert_near_cpu_result(got, want, tolerance=1e-4):
    assert got.is_cuda and got.dtype is want.dtype and got.shape == want.shape
    a, b = (t.detach().cpu() for t in (got, want))
    a, b = (t.float() if t.dtype in (flow.float16, flow.bfloat16) else t for t in (a, b))
    if b.numpy().dtype.kind != "f":
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    else:
        scale = np.max(np.abs(b.numpy()), initial=1, where=np.isfinite(b.numpy()))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_ops_in_a_plan_equal_the_cpu(case):
    op, example = case
    arrays, attrs = draw_call(op, example)
    if not arrays:
        return                                          # without inputs, nothing places it on cuda
    xs = [flow.from_numpy(a) for a in arrays]
    want = as_list(op.call(tuple(xs), attrs))
    g = make_graph(lambda self, *xs: as_list(op.call(tuple(xs), attrs)))
    if op.name in NO_KERNEL:
        with pytest.raises(UnsupportedError,
                           match=rf"{op.name}(.|\n)*there is no CUDA kernel(.|\n)*test_plans.py"):
            g(*map(to_cuda, xs))
        return
    for y, w in zip(g(*map(to_cuda, xs)), want, strict=True):
        assert y.is_cuda
        assert_equal_up_to_rounding(y.cpu().numpy(), w.numpy(), np.float32)
    executor(g)


@many
@given(random_programs)
def test_random_programs_in_plans_equal_the_cpu(program):
    """Elementwise chains are not fused, because every fused one would be compiled; the models below contain
    some.
    """
    steps, seed = program
    here = [flow.tensor(a) for a in start(seed)]
    with np.errstate(all="ignore"):
        want, steps = take(steps, [*map(to_cuda, here)], careful=True)
        if not want:
            return
        g = make_graph(lambda self, *values: tuple(take(steps, values)[0]), config={"disable_pass": "fuse"})
        got = g(*map(to_cuda, here))
        on_cpu = make_graph(lambda self, *values: tuple(take(steps, values)[0]))(*here)
        for a, b, c in zip(*map(as_list, (got, tuple(want), on_cpu)), strict=True):
            tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(b.dtype.name, 1e-4)
            assert_near_cpu_result(a, b, tolerance)
            assert_near_cpu_result(a, c, tolerance)


@pytest.mark.parametrize("name", nets.modules_with_inputs())
def test_models_in_plans_equal_the_cpu(name):
    make, xs = nets.modules_with_inputs()[name]
    flow.manual_seed(0)
    model = make().eval()
    on_cuda = copy.deepcopy(model).cuda()
    want = nets.collect_tensors(model(*xs))
    g = make_graph(lambda self, *xs: self.model(*xs), model=on_cuda)
    for _ in range(2):
        for y, w in zip(nets.collect_tensors(g(*map(to_cuda, xs))), want, strict=True):
            assert_near_cpu_result(y, w)


def followed(make, optimizer, x, y, loss=None, steps=4, scheduler=None, **options):
    """Return the losses of the training graphs on the CPU and on cuda, and both models."""
    here, far = twins(make)
    far = far.cuda()
    losses, graphs = [], []
    for model, bring in ((here, lambda t: t), (far, to_cuda)):
        o = optimizer(model.parameters())
        entry = o if scheduler is None else (o, scheduler(o))
        g = make_graph(train_step, entry, model=model, loss=loss or nn.CrossEntropyLoss(), **options)
        flow.manual_seed(3)
        losses.append([g(bring(x), bring(y)).mean().item() for _ in range(steps)])
        graphs.append(g)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    for p, q in zip(here.state_dict().values(), far.state_dict().values(), strict=True):
        assert_near_cpu_result(q, p, 1e-3)
    return graphs[1], far


OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1), "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: flow.optim.Adam(p, lr=0.01),
    "adamw": lambda p: flow.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "lamb": lambda p: flow.optim.LAMB(p, lr=0.01),
    "clipped": lambda p: flow.optim.SGD([{"params": list(p), "clip_grad_max_norm": 0.1,
                                          "clip_grad_norm_type": 2.0}],
                                        lr=0.1)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_in_a_plan_equals_the_cpu(name):
    g, _ = followed(make_mlp, OPTIMIZERS[name], *batch(),
                    scheduler=lambda o: flow.optim.lr_scheduler.StepLR(o, 2, 0.5))
    assert executor(g).runs == 4 and g.state_dict()["System-Train-TrainStep"].item() == 4


@pytest.mark.parametrize("name", ["gpt"])
def test_larger_models_train(name):
    make, loss, data = MODELS[name]
    (here, far), (x, y), losses = twins(make), data(), []

    def step(self, x, y):
        value = loss(self.model, x, y)
        value.backward()
        return value

    for model, bring in ((here, lambda t: t), (far.cuda(), to_cuda)):
        g = make_graph(step, flow.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), model=model)
        losses.append([g(bring(x), bring(y)).item() for _ in range(3)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4, atol=1e-5)


def test_lenet_with_momentum():
    rng = np.random.default_rng(0)
    x, y = (flow.tensor(rng.standard_normal((2, 1, 28, 28)).astype(np.float32)),
            flow.tensor(rng.integers(0, 10, 2)))
    followed(lambda: flow.vision.models.LeNet5(), lambda p: flow.optim.SGD(p, lr=0.01, momentum=0.9), x, y,
             steps=2)


def test_dropout_and_batch_norm_match_the_cpu():
    def make():
        return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5),
                             nn.Linear(6, 3))

    g, _ = followed(make, lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9), *batch())
    assert executor(g).draws


def test_micro_batches_and_recomputed_activations():
    def make():
        return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))
    followed(make, lambda p: flow.optim.SGD(p, lr=0.1), *batch(),
             config={"set_gradient_accumulation_steps": 2})


def test_inputs_and_outputs_of_a_plan():
    """Several inputs and outputs, a repeated output, views, an input, a variable, a constant, and nested
    containers; each output is a separate tensor.
    """
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.arange(6.0).reshape(2, 3))

        def forward(self, x, more):
            y = x @ self.w
            return {"y": y, "again": y, "t": y.t(), "row": y[1:], "x": x, "w": self.w, "c": flow.ones(2) * 3,
                    "more": [more["n"] + 1, None, x.new_zeros(2)],
                    "device": x.to(self.w.device) * x.new_ones(1)}

    x, n = flow.ones(3, 2), flow.tensor([1, 2])
    here, far = Part(), Part().cuda()
    g = make_graph(lambda self, x, more: self.part(x, more), part=far)
    want = nets.collect_tensors(here(x, {"n": n}))
    for _ in range(2):
        got = nets.collect_tensors(g(to_cuda(x), {"n": to_cuda(n)}))
        for a, b in zip(got, want, strict=True):
            assert_near_cpu_result(a, b)
        assert len({t.data_ptr() for t in got}) == len(got)
        for t in got:
            t.fill_(7)                                  # no other tensor changes
    assert_near_cpu_result(far.w, here.w)


def test_non_contiguous_inputs_are_copied():
    g = make_graph(lambda self, x: x * 2)
    x = flow.arange(12.0).reshape(3, 4)
    for y in (x, x.t().contiguous().t(), flow.arange(24.0).reshape(3, 8)[:, ::2]):
        assert_near_cpu_result(g(to_cuda(y) if y is x else y.cuda()), y * 2)
    assert_near_cpu_result(g(to_cuda(x).t().contiguous().t()), x * 2)
    assert_near_cpu_result(g(flow.cat([to_cuda(x), to_cuda(x)], 1)[:, 4:]), x * 2)


def test_parameters_may_be_moved_to_other_memory():
    model = nn.Linear(3, 2).cuda()
    g = make_graph(lambda self, x: self.model(x), model=model)
    x = flow.ones(2, 3).cuda()
    g(x)
    for w in (flow.ones(2, 3).cuda(), flow.arange(6.0).reshape(3, 2).cuda().t()):
        model.weight.data = w
        assert_near_cpu_result(g(x), model(x).cpu())
    with flow.no_grad():
        model.weight.mul_(2)
    assert_near_cpu_result(g(x), model(x).cpu())
    model.cpu()
    with pytest.raises(DeviceError, match=r"weight is on another device(.|\n)*cuda:0"):
        g(x)


def test_buffers_and_free_tensors_that_build_writes():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", flow.zeros(2))

        def forward(self, x):
            self.n.add_(x.sum(0))
            return self.n * 1

    part, factor, free = Count().cuda(), flow.tensor(3.0), flow.ones(2).cuda()
    g = make_graph(lambda self, x: self.part(x) * factor + free, part=part)
    x = flow.ones(4, 2).cuda()
    assert g(x).tolist() == [13, 13] and g(x).tolist() == [25, 25] and part.n.tolist() == [8, 8]
    factor.fill_(1.0)  # a CPU scalar, which can be combined with cuda tensors
    free.fill_(0.0)
    assert g(x).tolist() == [12, 12]


def test_states_round_trip():
    x, y = map(to_cuda, batch())
    model, other = twins(make_mlp)
    first = make_graph(train_step, flow.optim.Adam(model.cuda().parameters(), lr=0.1), model=model,
                       loss=nn.CrossEntropyLoss())
    for _ in range(3):
        first(x, y)
    state = first.state_dict()
    assert all(t.is_cuda for n, t in state.items() if n.endswith(("-m", "-v")))
    second = make_graph(train_step, flow.optim.Adam(other.cuda().parameters(), lr=0.1), model=other,
                        loss=nn.CrossEntropyLoss())
    second.load_state_dict(copy.deepcopy(state))
    assert second(x, y).item() == pytest.approx(first(x, y).item())
    assert executor(second).runs == 4


def test_a_saved_graph_is_loaded(tmp_path):
    model = make_mlp().cuda()
    g = make_graph(lambda self, x: self.model(x), model=model)
    x = batch()[0]
    want = g(x.cuda())
    flow.save(g, tmp_path / "g")
    assert_near_cpu_result(want, flow.load_graph(tmp_path / "g")(x))
    loaded = flow.load_graph(tmp_path / "g", "cuda")
    assert_near_cpu_result(loaded(x.cuda()), want.cpu())
    with pytest.raises(DeviceError, match=r'another device(.|\n)*x\.to\("cuda:0"\)'):
        loaded(x)
    flow.save(g.state_dict(), tmp_path / "s")
    assert flow.load(tmp_path / "s")["model"]["0.weight"].shape == (6, 4)


def test_show_and_profile_of_a_graph():
    x, y = map(to_cuda, batch())
    model = make_mlp().cuda()
    g = make_graph(train_step, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model=model,
                   loss=nn.CrossEntropyLoss())
    g(x, y)
    before = {n: t.cpu() for n, t in model.state_dict().items()}
    assert ("calls," in g.profile(x, y) and re.search(r"device +cuda:0\nmemory", g.report())
            and "MODULE:model:" in repr(g))
    for n, t in model.state_dict().items():
        assert_near_cpu_result(t, before[n], 0)


def test_a_step_counts_as_a_write():
    """Autograd detects that a graph's step has changed a saved parameter."""
    x, y = map(to_cuda, batch())
    model = make_mlp().cuda()
    g = make_graph(train_step, flow.optim.SGD(model.parameters(), lr=0.1), model=model,
                   loss=nn.CrossEntropyLoss())
    loss = model(x).sum()
    g(x, y)
    with pytest.raises(FlowError, match="in-?place"):
        loss.backward()


def test_streams_follow_each_other():
    g = make_graph(lambda self, x: (x * 2, x.sum()))
    x, s = flow.arange(6.0).cuda(), flow.cuda.Stream()
    g(x)
    with flow.cuda.stream(s):
        y, total = g(x + 1)
    s.synchronize()
    assert y.tolist() == [2, 4, 6, 8, 10, 12] and total.item() == 21 and g(x)[1].item() == 15
    assert executor(g).memory.users == {s}              # the next owner of this memory also waits for s


# ---- errors
def test_tensors_of_two_devices():
    model = make_mlp().cuda()
    with pytest.raises(DeviceError, match=r"same device(.|\n)*0.0_2 is on cpu, model.0.weight on "
                       r"cuda:0(.|\n)*\.to"):
        make_graph(lambda self, x: self.model(x), model=model, name="Apart")(batch()[0])
    g = make_graph(lambda self, x: self.model(x), model=model)
    g(batch()[0].cuda())
    with pytest.raises(DeviceError, match=r"another device than the graph(.|\n)*cuda:0(.|\n)*cpu"):
        g(batch()[0])
    with pytest.raises(DeviceError, match="FreeEagerTensor-0 on cpu"):
        make_graph(lambda self, x: x + flow.tensor([1.0, 2.0]))(flow.ones(2).cuda())


def test_an_index_out_of_range_is_reported_at_synchronization():
    g = make_graph(lambda self, x: self.emb(x), emb=nn.Embedding(4, 2).cuda())
    flow.cuda.synchronize()
    y = g(flow.tensor([1, 9]).cuda())
    with pytest.raises(KernelError, match="index(.|\n)*9"):
        y.cpu()
    assert g(flow.tensor([1, 3]).cuda()).cpu().shape == (2, 2)


def test_too_large_a_plan_is_a_recoverable_error():
    big = make_graph(lambda self, x: (x.expand(1 << 20, 1 << 20) * x.expand(1 << 20, 1 << 20).exp()).sum())
    with pytest.raises(MemoryError):
        big(flow.ones(1).cuda())
    assert make_graph(lambda self, x: x + 1)(flow.ones(1).cuda()).item() == 2


def test_mixing_global_and_gpu_tensors_is_refused():
    p = flow.placement("cpu", [0])
    x, y = flow.ones(2, 2).to_global(p, flow.sbp.broadcast), flow.ones(2, 2).cuda()
    for pair in ((x, y), (y, x)):
        with pytest.raises(DeviceError, match="same device"):
            make_graph(lambda self, a, b: a + b)(*pair)
