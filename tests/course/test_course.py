"""The topics of the chapters with core alone: nothing here needs more than flowedu.core. test_deletion.py
runs this file in a package that contains nothing else.
"""
import numpy as np
import pytest

from flowedu.core import extensions
from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.eager.arrays import copied, tensor_alias
from flowedu.core.grad.tape import run_backward
from flowedu.core.job.function import global_function
from flowedu.core.job.session import clear_default_session
from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.core.ops.define import REGISTRY as OPS
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.names import BROADCAST, PARTIAL, placement, split
from flowedu.core.sbp.ranks import VirtualEngine, set_virtual_devices
from flowedu.core.sbp.sbp import layout
from flowedu.core.sbp.tensor.convert import logical
from flowedu.core.sbp.tensor.shards import to_global
from flowedu.core.trace.graph import TracedGraph
from flowedu.core.values import dtype as dt
from flowedu.core.values import typing as tp
from flowedu.core.values.spec import Spec, broadcast
from flowedu.errors import CheckError, CommError, UnsupportedError


def draw_tensor(*shape, seed=0):
    return copied(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


class TwoLayerNet(Module):
    def __init__(self, sizes=(4, 8, 3)):
        super().__init__()
        self.w0, self.w1 = (Parameter(draw_tensor(a, b, seed=a)) for a, b in zip(sizes, sizes[1:]))
        self.b0, self.b1 = (Parameter(copied(np.zeros(n, np.float32))) for n in sizes[1:])

    def forward(self, x):
        return OPS["relu"](x @ self.w0 + self.b0) @ self.w1 + self.b1


def loss_of(y):
    return OPS["sum"](y * y, axis=(0, 1), keepdims=False)


def by_hand(net, x):
    """Compute the gradients of loss_of(net(x)) in NumPy."""
    w0, w1, b0, b1 = (p.numpy() for p in (net.w0, net.w1, net.b0, net.b1))
    h = x @ w0 + b0
    a = np.maximum(h, 0)
    dy = 2 * (a @ w1 + b1)
    dh = (dy @ w1.T) * (h > 0)
    return {"w0": x.T @ dh, "b0": dh.sum(0), "w1": a.T @ dy, "b1": dy.sum(0)}


def test_chapter_1_shapes_and_memory():
    assert broadcast((2, 1), (3,)) == (2, 3) and Spec((2, 3), dt.float32).nbytes == 24
    x = draw_tensor(2, 3)
    assert x.numpy().base is not None and x.numpy().tolist() == x.tolist()


def test_chapter_2_gradients():
    x, net = draw_tensor(5, 4, seed=9), TwoLayerNet()
    loss = loss_of(net(x))
    run_backward([loss], [copied(np.ones((), np.float32))])
    for name, want in by_hand(net, x.numpy()).items():
        np.testing.assert_allclose(getattr(net, name).grad.numpy(), want, rtol=1e-4, atol=1e-4, err_msg=name)


def test_chapter_3_an_update_makes_the_loss_smaller():
    x, net, losses = draw_tensor(5, 4, seed=9), TwoLayerNet(), []
    for step in range(20):
        loss = loss_of(net(x))
        losses.append(loss.item())
        run_backward([loss], [copied(np.ones((), np.float32))])
        group = [t for p in net.parameters() for t in (tensor_alias(p), p.grad)]
        OPS["sgd_update"](copied([0.001], dt.float32), copied([step], dt.int64), *group)
        for p in net.parameters():
            p.grad = None
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] / 2


def test_chapter_3_a_call_that_does_not_fit_is_a_type_error():
    with pytest.raises(TypeError, match="forward"):
        TwoLayerNet()()


def test_chapter_4_a_job_computes_what_its_body_says():
    clear_default_session()

    @global_function()
    def job(x: tp.Numpy.Placeholder((5, 4)), w: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
        return OPS["relu"](OPS["matmul"](x, w))

    x, w = draw_tensor(5, 4, seed=1).numpy(), draw_tensor(4, 3, seed=2).numpy()
    for _ in range(2):
        np.testing.assert_allclose(job(x, w), np.maximum(x @ w, 0), rtol=1e-5)
    assert len(job.plan.steps) <= 2
    for wrong, said in ((w, "shape does not fit"), (x.tolist(), "not a NumPy array")):
        with pytest.raises(CheckError, match=rf"job: argument 1 \(x\): .*{said}"):
            job(wrong, w)
    clear_default_session()


def test_chapter_5_a_graph_is_its_module():
    net, x = TwoLayerNet(), draw_tensor(5, 4, seed=3)

    class CoursePredict(TracedGraph):
        def __init__(self):
            super().__init__()
            self.net = net

        def build(self, x):
            return self.net(x)

    graph = CoursePredict()
    for _ in range(2):
        np.testing.assert_allclose(graph(x).numpy(), net(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("x_sbp, w_sbp", [(split(0), BROADCAST), (BROADCAST, split(1)), (split(1), split(0)),
                                          (BROADCAST, BROADCAST), (PARTIAL, BROADCAST)])
def test_chapter_6_every_layout_gives_the_same(x_sbp, w_sbp):
    set_virtual_devices(2)
    on = placement("cpu", [0, 1])
    x, w = draw_tensor(4, 6, seed=4), draw_tensor(6, 2, seed=5)

    def lying(t, sbp):
        return to_global(to_global(t, on, BROADCAST), on, sbp)

    y = lying(x, x_sbp) @ lying(w, w_sbp)
    np.testing.assert_allclose(logical(y).numpy(), x.numpy() @ w.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("x_sbp", [split(0), BROADCAST])
def test_chapter_6_a_graph_runs_on_every_rank(x_sbp):
    """Each rank has its own graph, and ranks exchange the parts they need; core alone reports what is
    missing.
    """
    set_virtual_devices(2)
    on = placement("cpu", [0, 1])
    net, x = TwoLayerNet(), draw_tensor(6, 4, seed=3)
    want = net(x).numpy()
    for name, cut in (("w0", split(1)), ("b0", split(0)), ("w1", split(0)), ("b1", BROADCAST)):
        setattr(net, name, Parameter(to_global(to_global(getattr(net, name).detach(), on, BROADCAST),
                                               on, cut)))

    class CourseSpread(TracedGraph):
        def __init__(self):
            super().__init__()
            self.net = net

        def build(self, x):
            return self.net(x)

    graph = CourseSpread()
    x = to_global(to_global(x, on, BROADCAST), on, x_sbp)
    np.testing.assert_allclose(logical(net(x)).numpy(), want, rtol=1e-4, atol=1e-5)
    if "global_graph" not in extensions.homes:
        with pytest.raises(UnsupportedError, match="global_graph: not in this package"):
            graph(x)
        return
    for _ in range(2):
        np.testing.assert_allclose(logical(graph(x)).numpy(), want, rtol=1e-4, atol=1e-5)


def test_chapter_6_a_deadlock_of_ranks_is_reported():
    engine, part = VirtualEngine(2), np.ones(3, np.float32)
    summing = route(layout("P", (0, 1)), layout("B", (0, 1)), Spec((3,), dt.float32))
    summed = engine.run({r: lambda comm: summing.perform(comm, part) for r in range(2)})
    assert [a.tolist() for a in summed.values()] == [[2.0] * 3] * 2
    with pytest.raises(ZeroDivisionError):
        engine.run({0: lambda comm: summing.perform(comm, part), 1: lambda comm: 1 // 0})
    with pytest.raises(CommError, match="waits in boxing P on 0-1 -> B on 0-1 for a rank that has ended"):
        engine.run({0: lambda comm: summing.perform(comm, part), 1: lambda comm: None})


def test_chapter_7_buffers_of_any_shape():
    arrays = [np.arange(n, dtype=np.float32) for n in (1, 3, 2)]
    buffers = TensorBuffer(arrays)
    assert buffers.shape == (3,)
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    again = TensorBuffer.from_array(rows, instance_dims=1)
    assert again.shape == (3,) and again.to_array(dt.float32, (2,)).tolist() == rows.tolist()
    joined = TensorList([a[None] for a in arrays])
    assert joined.shape == (3, 3) and [a[0].tolist() for a in joined] == [a.tolist() for a in buffers]


def test_chapter_8_cuda_computes_what_the_cpu_does():
    """Losses, gradients, and parameters are the same with the CUDA kernels; core only contains the hook that
    flowedu.cuda fills.
    """
    flow, cuda = pytest.importorskip("flowedu"), pytest.importorskip("flowedu.cuda", reason="core is alone")
    if not cuda.is_available():
        pytest.skip("no GPU, and FLOWEDU_CUDA=sim was not chosen")
    found = {}
    for device in ("cpu", "cuda"):
        net, x = TwoLayerNet(), draw_tensor(5, 4, seed=9).to(device)
        for name in ("w0", "b0", "w1", "b1"):
            setattr(net, name, Parameter(getattr(net, name).detach().to(device)))
        optimizer, losses = flow.optim.SGD(net.parameters(), lr=0.001, momentum=0.9), []
        for _ in range(5):
            loss = loss_of(net(x))
            run_backward([loss], [copied(np.ones((), np.float32)).to(device)])
            optimizer.step()
            losses.append(loss.item())
            gradients = [p.grad.cpu().numpy() for p in net.parameters()]
            optimizer.zero_grad()
        assert all(p.is_cuda == (device == "cuda") for p in net.parameters())
        found[device] = [np.array(losses), *gradients, *(p.detach().cpu().numpy() for p in net.parameters())]
    for a, b in zip(*found.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
