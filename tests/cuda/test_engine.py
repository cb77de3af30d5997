"""Tensors on cuda: placement, refused operations, operations across devices, and training."""
import copy
import pickle

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import DeviceError, UnsupportedError


def f32(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# placement
def test_a_tensor_reports_its_device():
    x = flow.tensor([1.0, 2.0], device="cuda")
    assert (x.is_cuda and not x.is_cpu and x.get_device() == 0
            and x.device == flow.device("cuda:0") == flow.device("cuda"))
    assert "device='cuda:0'" in repr(x) and repr(x).startswith("tensor([1., 2.]")
    y = x.cpu()
    assert y.device == flow.device("cpu") and y.tolist() == [1, 2] and y.cpu() is y
    assert (x.cuda() is x and x.to("cuda") is x and x.to(x) is x and x.to(flow.float32) is x
            and y.to(x).is_cuda)
    assert x.to("cuda", copy=True) is not x and x.to("cpu", flow.int64).tolist() == [1, 2]
    assert [x.item() for x in x] == [1.0, 2.0] and float(x.sum()) == 3.0 and bool(x[0]) and int(x[1]) == 2
    assert f"{x.sum():.1f}" == "3.0" and len(x) == 2


@pytest.mark.parametrize("make", [
    lambda d: flow.zeros(3, device=d), lambda d: flow.ones(2, 2, dtype=flow.int64, device=d),
    lambda d: flow.full((3,), 2.5, device=d),
    lambda d: flow.arange(5, device=d), lambda d: flow.linspace(0, 1, 5, device=d),
    lambda d: flow.eye(3, device=d),
    lambda d: flow.tensor([[1, 2]], device=d), lambda d: flow.as_tensor(np.arange(3.0), device=d),
    lambda d: flow.zeros_like(flow.ones(3, device=d)), lambda d: flow.ones_like(flow.zeros(2), device=d),
    lambda d: flow.full_like(flow.ones(3, device=d), 2), lambda d: flow.ones(3, device=d).new_zeros(2),
    lambda d: flow.ones(3, device=d).new_tensor([1.0]), lambda d: flow.ones(3, device=d).new_full((2,), 7),
    lambda d: flow.zeros(3, dtype=flow.float16, device=d),
    lambda d: flow.zeros(3, dtype=flow.bfloat16, device=d)])
def test_creation(make):
    there, here = make("cuda"), make("cpu")
    assert there.is_cuda and not here.is_cuda and there.dtype is here.dtype
    np.testing.assert_array_equal(there.cpu().float().numpy(), here.float().numpy())


@pytest.mark.parametrize("draw", [lambda d: flow.rand(40, device=d), lambda d: flow.randn(40, device=d),
                                  lambda d: flow.randint(0, 100, (40,), device=d),
                                  lambda d: flow.randperm(40, device=d),
                                  lambda d: flow.zeros(40, device=d).uniform_(),
                                  lambda d: flow.zeros(40, device=d).normal_(),
                                  lambda d: flow.nn.functional.dropout(flow.ones(40, device=d)),
                                  lambda d: flow.full((40,), 0.5, device=d).bernoulli(),
                                  lambda d: flow.rand_like(flow.zeros(40, device=d)),
                                  lambda d: flow.ones(40, device=d).multinomial(5)])
def test_random_numbers_are_those_of_the_cpu(draw):
    found = []
    for d in ("cpu", "cuda"):
        flow.manual_seed(3)
        found.append(draw(d))
    assert found[1].is_cuda
    np.testing.assert_allclose(found[1].cpu().numpy(), found[0].numpy(), rtol=1e-5, atol=1e-6)


def test_reading_device_memory_is_refused_or_copies():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    for read in (lambda: x.numpy(), lambda: np.asarray(x), lambda: x.detach().numpy()):
        with pytest.raises(TypeError,
                           match=r"can't convert cuda:0 device type tensor to numpy(.|\n)*x\.cpu\(\)"):
            read()
    for read in (lambda: memoryview(x), lambda: np.frombuffer(x)):
        with pytest.raises(BufferError, match=r"x\.cpu\(\)"):
            read()
    assert x.__dlpack_device__() == (2, 0) and x.data_ptr() != 0
    assert x.tolist() == [[1, 2], [3, 4]] and x[1, 1].item() == 4
    again = pickle.loads(pickle.dumps(x))
    assert again.tolist() == x.tolist() and not again.is_cuda
    twin = copy.deepcopy(x)
    assert (twin.is_cuda and twin.tolist() == x.tolist() and not twin.shares_block(x)
            and copy.copy(x).shares_block(x))
    assert flow.equal(x, twin) and flow.allclose(x, twin)


def test_custom_kernels_accept_tensors():
    x = flow.arange(8, dtype=flow.float32, device="cuda")
    add = flow.cuda.kernel("__global__ void add(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] "
                           "+= 1; }")
    add("add", 1, 32)(x, 8)
    assert x.tolist() == [*range(1, 9)]
    with pytest.raises(AttributeError, match="not on a GPU"):
        _ = flow.ones(2).__cuda_array_interface__
    assert not hasattr(flow.ones(2), "__cuda_array_interface__")


def test_saving(tmp_path):
    model = flow.nn.Linear(3, 2).cuda()
    flow.save(model.state_dict(), tmp_path / "state")
    found = flow.load(tmp_path / "state")
    assert not found["weight"].is_cuda
    there = flow.load(tmp_path / "state", map_location="cuda")
    assert there["weight"].is_cuda
    for state in (found, there):
        for target in (flow.nn.Linear(3, 2), flow.nn.Linear(3, 2).cuda()):
            place = target.weight.device
            target.load_state_dict(state)
            assert target.weight.device == place
            np.testing.assert_array_equal(target.weight.detach().cpu().numpy(),
                                          model.weight.detach().cpu().numpy())


# operations across devices
def test_ops_on_different_devices_are_refused():
    x, y = flow.ones(3, device="cuda"), flow.ones(3)
    for call in (lambda: x + y, lambda: y * x, lambda: flow.cat([x, y]), lambda: flow.where(x > 0, x, y),
                 lambda: x @ y, lambda: x.add_(y), lambda: flow.nn.functional.linear(x, flow.ones(2, 3))):
        with pytest.raises(DeviceError, match=r'(?i)same device(.|\n)*is on cuda:0(.|\n)*x\.to\("cuda:0"\)'):
            call()
    with pytest.raises(DeviceError, match="x is on cuda:0, y is on cpu"):
        x + y
    assert x.tolist() == [1, 1, 1] and x._version == 0


def test_numbers_and_0d_tensors_combine_with_any_device():
    x, s = flow.tensor([1.0, 2.0], device="cuda"), flow.tensor(3.0)
    for y in (x * 3, 3 * x, x * s, s * x, x * s.double()):
        assert y.is_cuda and y.tolist() == [3, 6]
    x *= s
    assert x.tolist() == [3, 6]
    with pytest.raises(DeviceError):
        s.add_(x.sum())
    w = flow.tensor(2.0, requires_grad=True)
    (x * w).sum().backward()
    assert w.grad.item() == 9 and not w.grad.is_cuda


def test_gradients_cross_devices():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 2).to("cuda")
    assert y.requires_grad and not y.is_leaf and y.is_cuda
    (y.exp().cpu() * 3).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 6 * np.exp([2.0, 4.0]), rtol=1e-6)
    assert not w.grad.is_cuda
    v = flow.ones(2, device="cuda", requires_grad=True)
    g, = flow.grad((v ** 3).sum(), [v], create_graph=True)
    g.sum().backward()
    assert g.is_cuda and v.grad.tolist() == [6, 6]


def test_copies_cross_devices():
    x, y = flow.zeros(2, 3, device="cuda"), flow.arange(6).reshape(2, 3).float()
    x.copy_(y)
    assert x.tolist() == y.tolist()
    x[:, 1:].copy_(y[:, :2] * 10)
    assert x.tolist() == [[0, 0, 10], [3, 30, 40]]
    y.T.copy_(x.T)
    assert y.tolist() == x.tolist()
    y[0] = x[1]
    assert y.tolist() == [[3, 30, 40], [3, 30, 40]]
    x.data = flow.ones(2)
    assert not x.is_cuda
    x.data = flow.ones(2, device="cuda")
    assert x.is_cuda and (x + 1).tolist() == [2, 2]


def test_a_graph_stays_on_one_device():
    """A graph stays on the device of its first call; test_plans.py tests other properties of plans on
    cuda.
    """
    class Graph(flow.nn.Graph):
        def __init__(self, m):
            super().__init__()
            self.m = m

        def build(self, x):
            return self.m(x)

    with pytest.raises(DeviceError, match="same device(.|\n)*is on cuda:0, m.weight on cpu"):
        Graph(flow.nn.Linear(2, 2))(flow.ones(1, 2, device="cuda"))
    with pytest.raises(DeviceError, match="same device(.|\n)*is on cpu, m.weight on cuda:0"):
        Graph(flow.nn.Linear(2, 2).cuda())(flow.ones(1, 2))
    g, m = None, flow.nn.Linear(2, 2)
    g = Graph(m)
    want = g(flow.ones(1, 2)).tolist()
    with pytest.raises(DeviceError, match="another device than the graph(.|\n)*expected: cpu(.|\n)*got: "
                       "+cuda:0"):
        g(flow.ones(1, 2, device="cuda"))
    m.cuda()
    with pytest.raises(UnsupportedError, match="weight is on cuda:0, and this runs on the CPU"):
        g(flow.ones(1, 2))
    m.cpu()
    assert g(flow.ones(1, 2)).tolist() == want
    for x in (flow.ones(1, 2, device="cuda"), flow.ones(1, 2)):
        x = x.to_global(flow.placement("cuda", [0]), flow.sbp.broadcast)
        with pytest.raises(UnsupportedError, match="this runs on the CPU"):
            Graph(flow.nn.Linear(2, 2).to_global(flow.placement("cuda", [0]), flow.sbp.broadcast))(x)


# ---- training
def train_lenet(device, steps=4, optimizer=lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9)):
    flow.manual_seed(0)
    model = flow.vision.models.lenet5().to(device)
    opt = optimizer(model.parameters())
    x, t = flow.tensor(f32(4, 1, 28, 28), device=device), flow.tensor([3, 1, 4, 1], device=device)
    losses = []
    for _ in range(steps):
        loss = flow.nn.functional.cross_entropy(model(x), t)
        loss.backward()
        opt.step()
        opt.zero_grad()
        losses.append(loss.item())
    return losses, model, opt


def test_lenet_learns_as_on_the_cpu():
    here, _, _ = train_lenet("cpu")
    there, model, _ = train_lenet("cuda")
    assert all(p.is_cuda for p in model.parameters()) and there[-1] < there[0]
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4)


OPTIMIZERS = {"SGD": {"lr": 0.1}, "Momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
              "Adam": {"lr": 0.01},
              "AdamW": {"lr": 0.01, "weight_decay": 0.1}, "LAMB": {"lr": 0.01},
              "RMSprop": {"lr": 0.01, "centered": True}, "Adagrad": {"lr": 0.1}, "Adadelta": {"lr": 1.0}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    """Parameters, states, and loaded state dicts are on the parameters' devices, of which there may be
    several.
    """
    kind = getattr(flow.optim, name.replace("Momentum", "SGD"))
    found, states = [], []
    for devices in (("cpu", "cpu"), ("cuda", "cuda"), ("cuda", "cpu")):
        ps = [flow.nn.Parameter(flow.tensor(f32(3, 4, seed=i), device=d)) for i, d in enumerate(devices)]
        opt = kind(ps, **OPTIMIZERS[name])
        for k in range(3):
            for i, p in enumerate(ps):
                p.grad = flow.tensor(f32(3, 4, seed=10 + k + i), device=p.device)
            opt.step()
        assert all(s.device == p.device for p in ps for s in opt.state.get(p, {}).values())
        found.append([p.detach().cpu().numpy() for p in ps])
        states.append(opt.state_dict())
    for other in found[1:]:
        for a, b in zip(other, found[0]):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    ps = [flow.nn.Parameter(flow.tensor(a, device="cuda")) for a in found[0]]
    opt = kind(ps, **OPTIMIZERS[name])
    opt.load_state_dict(states[0])
    assert all(s.is_cuda for p in ps for s in opt.state.get(p, {}).values())


def test_hooks_accumulation_and_clipping():
    seen = []
    w = flow.ones(3, device="cuda", requires_grad=True)
    w.register_hook(lambda g: seen.append(g.is_cuda) or g * 2)
    for _ in range(2):
        (w * flow.arange(3, device="cuda")).sum().backward()
    assert seen == [True, True] and w.grad.tolist() == [0, 4, 8]
    norm = flow.nn.utils.clip_grad_norm_([w], 1.0)
    np.testing.assert_allclose(norm.item(), np.sqrt(80), rtol=1e-5)
    np.testing.assert_allclose(w.grad.cpu().numpy(), np.array([0, 4, 8]) / np.sqrt(80), rtol=1e-4)


def test_modules_move():
    m = flow.nn.Sequential(flow.nn.Conv2d(1, 2, 3), flow.nn.BatchNorm2d(2))
    m(flow.ones(2, 1, 5, 5)).sum().backward()
    ids = [id(p) for p in m.parameters()]
    m.cuda()
    assert ids == [id(p) for p in m.parameters()]
    assert (all(t.is_cuda for t in (*m.parameters(), *m.buffers())) and all(p.grad.is_cuda
                                                                            for p in m.parameters()))
    m(flow.ones(2, 1, 5, 5, device="cuda")).sum().backward()
    assert m[1].num_batches_tracked.item() == 2
    m.to("cpu")
    assert not any(t.is_cuda for t in (*m.parameters(), *m.buffers()))
    assert (flow.nn.BatchNorm2d(3, device="cuda").running_mean.is_cuda
            and flow.nn.Linear(2, 2, device="cuda").weight.is_cuda)


def test_backward_detects_modified_tensors():
    w = flow.ones(3, device="cuda", requires_grad=True)
    y = w * 2
    z = y.exp()
    z += 1
    with pytest.raises(flow.errors.GradientError, match="modified by an inplace"):
        z.sum().backward()
