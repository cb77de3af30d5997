"""CUDA graphs: captured work does not run, a replay runs it again, and operations that cannot be captured
raise.
"""
import gc
import io

import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow
from flowedu import nn
from flowedu.cuda import graphs
from flowedu.cuda.graphs import captured
from flowedu.cuda.machine import machine
from flowedu.errors import ArgumentError, KernelError


@pytest.fixture
def s():
    return flow.cuda.Stream()


def capture_work(s, *works):
    """Capture a graph of this work on stream s."""
    return captured(lambda _: [w() for w in works], s)


def test_copies_and_fills_are_kept_in_order(s):
    driver, x, y = machine().driver, flow.zeros(4).cuda(), flow.zeros(4).cuda()
    g = capture_work(s, lambda: driver.memset_d32_async(x.address, 7, 4, s.handle),
                     lambda: driver.memcpy_dtod_async(y.address, x.address, 16, s.handle),
                     lambda: driver.memset_d32_async(x.address, 0, 2, s.handle))
    assert g.nodes == 3 and x.tolist() == y.tolist() == [0] * 4
    for _ in range(2):
        g.launch(s)
        s.synchronize()
        assert x.view(-1).tolist()[:2] == [0, 0] and y.cpu().numpy().view(np.int32).tolist() == [7] * 4
        y.zero_()


def test_a_replay_repeats_what_was_captured():
    x, w = flow.arange(6.0).reshape(2, 3).cuda(), flow.ones(3, 2).cuda()

    def want():
        return (x @ w).softmax(0).sum(1).cpu().numpy()

    want()
    g = flow.cuda.CUDAGraph()
    assert not flow.cuda.is_current_stream_capturing()
    with flow.cuda.graph(g):
        assert flow.cuda.is_current_stream_capturing()
        y = (x @ w).softmax(0).sum(1)
    for values in (1.0, -2.0):
        x.mul_(values)
        w.add_(values)
        g.replay()
        np.testing.assert_array_equal(y.cpu().numpy(), want())


def test_gradients_are_replayed():
    """The graph contains forward and backward; the optimizer updates after each replay."""
    def made():
        flow.manual_seed(0)
        m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).cuda()
        return m, flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    def gradients(m, o):
        o.zero_grad(set_to_none=True)
        loss = m(x).square().mean()
        loss.backward()
        return loss

    x, here, far = flow.ones(2, 3).cuda(), made(), made()
    gradients(*far)
    g = flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):
        loss = gradients(*far)
    for _ in range(3):
        want = gradients(*here)
        here[1].step()
        g.replay()
        far[1].step()
        np.testing.assert_allclose(loss.item(), want.item(), rtol=1e-5)


def test_memory_of_a_graph_is_not_reused():
    x = flow.ones(1000).cuda()
    (x + 1).exp().sum()
    g = flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):
        y = (x + 1).exp().sum()                         # two intermediate results, and scratch memory
    flow.cuda.empty_cache()
    others = [flow.full((1000,), 5.0).cuda() for _ in range(8)]
    g.replay()
    assert y.item() == pytest.approx(1000 * np.exp(2), rel=1e-5) and all((o == 5).all() for o in others)
    reserved = flow.cuda.memory_reserved()
    del y
    g.reset()
    flow.cuda.empty_cache()
    assert flow.cuda.memory_reserved() < reserved


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_plan_is_one_call(rate, monkeypatch):
    """From the second run on, the plan is one call, plus one for each step that draws random numbers."""
    class G(nn.Graph):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dropout(rate), nn.Dropout(rate)

        def build(self, x):
            return self.second(self.first(x @ x).relu() + 1).sum()

    g, x = G(), flow.ones(3, 3).cuda()
    g(x)
    executor = g._compiled.program.executor
    apart = [p for p in executor.parts if isinstance(p, int)]
    assert apart == executor.draws and len(apart) == (2 if rate else 0)
    inside = sum(p.nodes for p in executor.parts if not isinstance(p, int))
    assert inside + sum(len(executor.queues[i]) for i in apart) == sum(map(len, executor.queues)) > len(apart)
    calls = []
    monkeypatch.setattr(graphs.Sequence, "launch", lambda self, s: calls.append("graph"))
    monkeypatch.setattr(type(executor), "_repeat", lambda self, i, stream: calls.append(i))
    g(x)
    assert (calls == ["graph"] if not rate else [c for c in calls if c != "graph"] == apart
            and calls.count("graph") == 3)


@in_simulator
def test_a_profile_counts_what_is_replayed():
    class G(nn.Graph):
        def build(self, x):
            return (x @ x).softmax(1).sum()

    g, x = G(), flow.ones(3, 3).cuda()
    g(x)
    with flow.cuda.profile(io.StringIO()) as counted:
        g(x)
    executor = g._compiled.program.executor
    assert sum(k["launches"] for k in counted.kernels.values()) == sum(map(len, executor.queues))


def test_plans_can_be_captured():
    model = nn.Linear(3, 2).cuda()

    class G(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x).relu()

    plan, x = G(), flow.ones(2, 3).cuda()
    plan(x) * 2
    g = flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):
        y = plan(x) * 2
    x.mul_(-3)
    g.replay()
    np.testing.assert_allclose(y.tolist(), (model(x).relu() * 2).tolist(), rtol=1e-5)


def test_an_index_out_of_range_in_a_replay_is_reported():
    ids, table = flow.tensor([0, 1]).cuda(), flow.ones(3, 2).cuda()

    def gathered():
        return nn.functional.embedding(ids, table)

    gathered()
    g = flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):
        y = gathered()
    g.replay()
    flow.cuda.synchronize()
    ids.fill_(7)
    g.replay()
    with pytest.raises(KernelError, match="index(.|\n)*7"):
        y.cpu()


# operations that a capture refuses
WAITS = {"item": lambda x: x.sum().item(), "cpu": lambda x: x.cpu(),
         "cuda": lambda x: flow.arange(1234.0).cuda(), "synchronize": lambda x: flow.cuda.synchronize(),
         "stream": lambda x: flow.cuda.current_stream().synchronize(),
         "query": lambda x: flow.cuda.current_stream().query(),
         "event": lambda x: flow.cuda.current_stream().record_event().synchronize(),
         "default stream": lambda x: machine().driver.memset_d8(x.address, 0, 4)}


@pytest.mark.parametrize("name", WAITS)
def test_synchronization_inside_a_capture_is_refused(name):
    x = flow.ones(3).cuda()
    x.sum().item()
    g = flow.cuda.CUDAGraph()
    with pytest.raises((KernelError, machine().driver.Error), match="captur"), flow.cuda.graph(g):
        WAITS[name](x)
    with pytest.raises(ArgumentError, match="nothing was captured"):
        g.replay()
    assert (x + 1).tolist() == [2, 2, 2] and not flow.cuda.is_current_stream_capturing()


@in_simulator
def test_a_lost_capture_is_reported_at_its_end(s):
    with pytest.raises(KernelError, match="lost"):
        def swallow(_):
            with pytest.raises(machine().driver.Error):
                s.handle.synchronize()
        captured(swallow, s)


def test_the_default_stream_and_a_captured_one_cannot_be_captured(s):
    with pytest.raises(KernelError, match="default stream"):
        flow.cuda.CUDAGraph().capture_begin()
    g = flow.cuda.CUDAGraph()
    with flow.cuda.stream(s):
        g.capture_begin()
        with pytest.raises(KernelError, match="already"):
            captured(lambda _: None, s)
        with pytest.raises(ArgumentError, match="already"):
            g.capture_begin()
        g.capture_end()
        g.replay()
        with pytest.raises(ArgumentError, match="already"):
            g.capture_begin()
    with pytest.raises(ArgumentError, match="nothing is being captured"):
        g.capture_end()


def test_streams_that_wait_for_a_captured_one_are_captured_with_it(s):
    other, x = flow.cuda.Stream(), flow.zeros(4).cuda()

    def fill(value, on):
        return machine().driver.memset_d32_async(x.address, value, 4, on.handle)

    def work(_):
        fill(1, s)
        other.wait_stream(s)
        fill(2, other)
        s.wait_stream(other)

    g = captured(work, s)
    assert x.cpu().numpy().view(np.int32).tolist() == [0] * 4
    g.launch(s)
    s.synchronize()
    assert x.cpu().numpy().view(np.int32).tolist() == [2] * 4
    fill(3, other)                                      # this stream's own work again
    other.synchronize()
    assert x.cpu().numpy().view(np.int32).tolist() == [3] * 4


@in_simulator
def test_a_fault_in_a_replay_is_reported():
    source = ("__global__ void read(const float* x, const long long* i, float* y) { y[threadIdx.x] = "
              "x[i[threadIdx.x]]; }")
    f = flow.cuda.kernel(source).function("read")
    s = flow.cuda.Stream()
    x, y, i = flow.ones(4).cuda(), flow.zeros(1).cuda(), flow.zeros(1, dtype=flow.int64).cuda()
    f.prepare("PPP")
    g = captured(lambda _: f.prepared_async_call((1, 1), (1, 1, 1), s.handle, x.address, i.address,
                                                 y.address), s)
    g.launch(s)
    assert y.item() == 1
    i.fill_(1 << 30)
    with pytest.raises(flow.cuda.CudaFault) as e:
        g.launch(s)
    assert e.value.kernel == "read" and e.value.kind == "outside"


def test_graphs_are_freed():
    x = flow.ones(3).cuda()
    x + 1
    for _ in range(3):
        g = flow.cuda.CUDAGraph()
        with flow.cuda.graph(g):
            y = x + 1
        g.replay()
        assert y.tolist() == [2, 2, 2]
        del g, y
    gc.collect()
    flow.cuda.empty_cache()
    assert not any(p.private for p in [flow.cuda.memory.pool(0)])
