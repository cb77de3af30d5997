"""Law: after any change of program state between two calls of a graph, and any write in build, a call equals
the eager modules or raises an error. A traced module remains an ordinary module.
"""
import copy
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.errors import FlowError, GradientError, UnsupportedError
from flowedu.nn import functional as F
from flowedu.nn.graph import changes

from .making import make_graph


# ---- a module that has, reads, and writes the kinds of state it is given
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.shift = 1.5, flow.ones(3)

    def forward(self, x):
        return x * self.k + self.shift


class ChangingNet(nn.Module):
    """Model whose forward executes the lines of the table below that are in `kinds`; h is passed from line to
    line.
    """

    def __init__(self, kinds=()):
        super().__init__()
        self.kinds = frozenset(kinds)
        self.fc = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)
        self.inner = Inner()
        self.drop = nn.Dropout(1.0)
        self.body = nn.Sequential(nn.Tanh(), nn.Identity())
        self.register_buffer("count", flow.zeros(3))
        self.register_buffer("total", flow.zeros(3))
        self.register_buffer("square", flow.arange(9.0).reshape(3, 3) * 0.1)
        self.turned = flow.arange(9.0).reshape(3, 3) * 0.1
        self.cache, self.seen, self.grown = flow.zeros(3), flow.zeros(3), flow.zeros(1, 3)
        self.n = 2
        self.first = True
        self.weights = [1.0, 2.0]
        self.last = None

    def forward(self, x):
        h = self.inner(self.body(self.fc(x)))
        for kind, line in LINES.items():
            if kind in self.kinds:
                h = line(self, h)
        return h


def buffer_rebound(m, h):
    m.count = m.count * 0.5 + h.detach().mean(0)
    return h + m.count


def buffer_in_place(m, h):
    m.total.add_(h.detach().mean(0))
    return h - m.total


def attribute_rebound(m, h):
    m.cache = m.cache * 0.5 + h.detach().mean(0)
    return h + m.cache


def attribute_in_place(m, h):
    m.seen[1:].add_(1)
    return h + m.seen


def attribute_grown(m, h):
    m.grown = flow.cat([m.grown[-3:], h.detach().mean(0, keepdim=True)])
    return h + m.grown.sum(0)


def views(m, h):
    """Transpose two attributes: the old tensors remain readable, and the new ones are views of their
    memory.
    """
    before, m.square = m.square, m.square.t()
    old, m.turned = m.turned, m.turned.t()
    return h @ m.square + before[0] + old.t()[1] @ m.turned


def first_value(m, h):
    if m.last is not None:
        h = h + m.last
    m.last = h.detach().sum()
    return h


def number(m, h):
    m.n += 1
    return h * m.n


def flag(m, h):
    if m.first:
        h, m.first = h * 3, False
    return h


def scale_by_list(m, h):
    return h * sum(m.weights)


LINES = {"norm": lambda m, h: m.bn(h), "dropout": lambda m, h: h + m.drop(h),
         "buffer_rebound": buffer_rebound,
         "buffer_in_place": buffer_in_place, "attribute_rebound": attribute_rebound, "listed": scale_by_list,
         "attribute_in_place": attribute_in_place, "views": views, "attribute_grown": attribute_grown,
         "first_value": first_value, "number": number, "flag": flag}


# ---- changes from outside: {name: change of the module, with a random number}
def parameter(m, v):
    m.fc.bias = nn.Parameter(flow.full((3,), v))


def by_data(m, v):
    m.fc.weight.data = flow.full((3, 3), v)


def in_place(m, v):
    with flow.no_grad():
        m.fc.weight.mul_(v)
        m.total.fill_(v)
        m.bn.running_var.fill_(v * v)


def attributes(**values):
    def change(m, v):
        for name, make in values.items():
            setattr(m, name, make(v))
    return change


def child(m, v):
    m.body[0] = nn.ReLU() if v > 0 else nn.Sigmoid()


def grow(m, v):
    m.body.append(nn.Hardtanh(-1.0, abs(v)))


def shrink(m, v):
    if len(m.body) > 1:
        del m.body[-1]


def table(m, v):
    m._buffers["total"].sub_(v)
    m.weights[0] = v


OUTSIDE = {
    "nothing": lambda m, v: None,
    "eval": lambda m, v: m.eval(),
    "train": lambda m, v: m.train(),
    "eval of a part": lambda m, v: m.bn.eval(),
    "a parameter": parameter,
    "its data": by_data,
    "written in place": in_place,
    "no parameter": lambda m, v: setattr(m.fc, "bias", None),
    "a buffer": attributes(count=lambda v: flow.full((3,), v)),
    "a running variance": lambda m, v: setattr(m.bn, "running_var", flow.full((3,), abs(v))),
    "an attribute": attributes(cache=lambda v: flow.full((3,), v), last=lambda v: flow.tensor(v)),
    "an attribute in place": lambda m, v: (m.cache.mul_(v), m.seen.zero_()),
    "an attribute of a part": lambda m, v: setattr(m.inner, "shift", flow.full((3,), v)),
    "a number": attributes(n=lambda v: v),
    "a number of a part": lambda m, v: setattr(m.inner, "k", v),
    "an element": table,
    "a flag": attributes(first=lambda v: True),
    "a child": child, "a new child": grow, "a child less": shrink,
    "no attribute": attributes(last=lambda v: None),
    "no gradient": lambda m, v: m.fc.weight.requires_grad_(False),
    "a gradient": lambda m, v: m.fc.requires_grad_(True),
}
REFUSED = {"a parameter", "no parameter"}              # in a graph with an optimizer over the old parameter

INPUTS = {"nothing": lambda x: x, "add_": lambda x: x.add_(1), "a view": lambda x: (x[:, 1].mul_(2), x)[1],
          "a view of a view": lambda x: (x.t()[0, 1:].sub_(3), x)[1],
          "set": lambda x: (x.__setitem__(0, 7.0), x)[1],
          "dropout": lambda x: F.dropout(x, 1.0, True, inplace=True),
          "relu": lambda x: F.relu(x, inplace=True)}


def state(m):
    """Return the whole state of a module, as arrays, numbers, and lists."""
    found = {}
    for path, part in m.named_modules():
        for name, x in {**vars(part), **part._parameters, **part._buffers}.items():
            if isinstance(x, flow.Tensor):
                assert x.is_eager, f"{path}.{name} is lazy"
                x = x.detach().numpy().copy(), x.requires_grad
            elif name.startswith("_") or isinstance(x, nn.Module):
                continue
            found[f"{path}.{name}"] = copy.copy(x)
    return found


def assert_same_program_state(a, b):
    a, b = state(a), state(b)
    assert a.keys() == b.keys()
    for name, x in a.items():
        if isinstance(x, tuple) and isinstance(x[0], np.ndarray):
            np.testing.assert_allclose(x[0], b[name][0], rtol=1e-4, atol=1e-5, err_msg=name)
            assert x[1] == b[name][1], name
        else:
            assert x == b[name], name


def twins(kinds, trained):
    flow.manual_seed(1)
    a = ChangingNet(kinds)
    b = copy.deepcopy(a)
    optimizers = [flow.optim.SGD(m.parameters(), lr=0.01, momentum=0.5) for m in (a, b)] if trained else []
    return a, b, optimizers


def step(m, x, written, optimizer):
    """Run the same operations as build below, eagerly."""
    y = m(written(x))
    if optimizer is None:
        return y
    loss = (y * y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def build_of(written, trained):
    def build(self, x):
        y = self.m(written(x))
        if trained:
            y = (y * y).mean()
            y.backward()
        return y
    return build


def follow(kinds, changes, written="nothing", trained=False):
    """Call up to ten times, until a call is refused; return True if none was refused."""
    a, b, optimizers = twins(kinds, trained)
    write = INPUTS[written]
    g = make_graph(build_of(write, trained), *optimizers[1:], m=b)
    rng = np.random.default_rng(0)
    for number, value in changes:
        for m in (a, b):
            OUTSIDE[number](m, value)
        x = flow.tensor(rng.standard_normal((4, 3)).astype(np.float32))
        z = x.clone()
        try:
            want = step(a, x, write, optimizers[0] if trained else None)
        except GradientError:                            # all parameters are frozen
            with pytest.raises(FlowError):
                g(z)
            return False
        try:
            got = g(z)
        except FlowError:
            assert trained and number in REFUSED, number
            return False
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(z.numpy(), x.numpy(), rtol=1e-6)
        assert_same_program_state(a, b)
    x = flow.ones(4, 3)
    # without a graph
    np.testing.assert_allclose(b(x).detach().numpy(), a(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert_same_program_state(a, b)
    return True


STEADY = [("nothing", 1.0)] * 4


@pytest.mark.parametrize("trained", [False, True], ids=["predict", "train"])
@pytest.mark.parametrize("kind", LINES)
def test_writes_in_forward_are_applied(kind, trained):
    assert follow({kind}, STEADY, trained=trained)


@pytest.mark.parametrize("trained", [False, True], ids=["predict", "train"])
@pytest.mark.parametrize("change", OUTSIDE)
def test_changes_between_calls_are_detected(change, trained):
    changes = [*STEADY[:2], (change, 0.5), *STEADY[:2], (change, -2.0), ("nothing", 1.0)]
    assert follow(set(LINES) - {"number", "flag"}, changes,
                  trained=trained) != (trained and change in REFUSED)


@pytest.mark.parametrize("trained", [False, True], ids=["predict", "train"])
@pytest.mark.parametrize("written", INPUTS)
def test_writes_to_inputs_reach_the_caller(written, trained):
    assert follow({"norm"}, STEADY, written, trained)


@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from([*LINES])), st.lists(st.tuples(st.sampled_from([*OUTSIDE]), st.sampled_from(
    [0.5, -0.5, 1.25, -2.0])), min_size=10, max_size=10), st.sampled_from([*INPUTS]), st.booleans())
def test_random_changes_are_detected(kinds, changes, written, trained):
    follow(kinds, changes, written, trained)


# ---- state outside of modules, and log messages
def forward(self, x):
    return self.m(x)


def traces(monkeypatch):
    """Return a list that grows with every trace."""
    found = []
    made = nn.Graph._compile
    monkeypatch.setattr(nn.Graph, "_compile", lambda self, *a, **k: (found.append(self.name),
                                                                     made(self, *a, **k))[1])
    return found


def test_unchanged_state_causes_no_new_trace(monkeypatch):
    """Other modules, eager steps of this one, and reverted changes do not cause a new trace."""
    found, m, x = traces(monkeypatch), ChangingNet({"norm", "listed"}), flow.ones(2, 3)
    g = make_graph(forward, m=m)
    for _ in range(3):
        g(x)
        m(x), ChangingNet(), m.train(), m.requires_grad_(True)
        m.n, m.inner.k, m.cache = 3, 9.0, m.cache
        m.n, m.inner.k = 2, 1.5
        m.load_state_dict(m.state_dict())
        with flow.no_grad():
            m.fc.weight.mul_(2)
    assert len(found) == 1


MAKERS = {"adam": lambda p: flow.optim.Adam(p, lr=0.05),
          "sgd": lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9)}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_new_trace_keeps_the_optimizer_state(make):
    """Keeps the moments and the step count, and with it the rate of a schedule."""
    a, b, _ = twins({"norm"}, False)
    oa, ob = make(a.parameters()), make(b.parameters())
    sa, sb = (flow.optim.lr_scheduler.ExponentialLR(o, 0.7) for o in (oa, ob))
    g = make_graph(build_of(lambda x: x, True), (ob, sb), m=b)
    for number in range(8):
        x = flow.tensor(np.random.default_rng(number).standard_normal((4, 3)).astype(np.float32))
        for m in (a, b):
            m.train(number % 3 != 1)
        want = step(a, x, lambda x: x, oa)
        sa.step()
        np.testing.assert_allclose(g(x).item(), want.item(), rtol=1e-4)
        assert_same_program_state(a, b)
    assert g.state_dict()["System-Train-TrainStep"].tolist() == [8]


@pytest.mark.parametrize("option, value", [("lr", 0.5), ("weight_decay", 0.3), ("momentum", 0.1),
                                           ("nesterov", True),
                                           ("maximize", True), ("betas", (0.5, 0.6)), ("eps", 0.1),
                                           ("clip", 0.01), ("params", None)])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_changed_optimizer_options_are_detected(make, option, value):
    a, b, _ = twins((), False)
    oa, ob = (make([m.fc.weight]) for m in (a, b))
    g = make_graph(build_of(lambda x: x, True), ob, m=b)
    for number in range(5):
        if number == 2:
            for m, o in (a, oa), (b, ob):
                if option == "params":
                    o.add_param_group({"params": [m.fc.bias]})
                elif option == "clip":
                    o.param_groups[0].update(clip_grad_max_norm=value, clip_grad_norm_type=2.0)
                    oa.step = lambda: (oa.clip_grad(), type(oa).step(oa))            # a graph clips by itself
                elif option in o.param_groups[0]:
                    o.param_groups[0][option] = value
        x = flow.ones(4, 3)
        want = step(a, x, lambda x: x, oa)
        np.testing.assert_allclose(g(x).item(), want.item(), rtol=1e-4)
        assert_same_program_state(a, b)


def test_a_changed_default_dtype_is_detected():
    g, x = make_graph(lambda self, x: flow.full((2,), 0.5)), flow.ones(2)
    assert g(x).dtype is flow.float32
    flow.set_default_dtype(flow.float64)
    try:
        assert g(x).dtype is flow.float64
    finally:
        flow.set_default_dtype(flow.float32)
    assert g(x).dtype is flow.float32


def test_a_new_seed_restarts_the_random_numbers():
    g, x = make_graph(forward, m=nn.Dropout(0.5)), flow.ones(100)
    found = []
    for seed in (1, 2, 1):
        flow.manual_seed(seed)
        found.append([g(x).tolist() for _ in range(2)])
    assert found[0] == found[2] != found[1] and found[0][0] != found[0][1]


def test_a_hook_registered_later_is_detected():
    m, x = nn.Linear(2, 2), flow.ones(1, 2)
    g = make_graph(forward, m=m)
    g(x)
    handle = m.register_forward_hook(lambda m, x, y: y * 0)
    with pytest.warns(UserWarning, match="the hooks of m are not run in a nn.Graph"):
        g(x)
    handle.remove()
    assert np.array_equal(g(x).numpy(), m(x).detach().numpy())


def test_changes_in_a_graph_and_in_unnamed_modules_are_detected():
    """Attributes of the graph itself, a module in a list, a list, an array, a configuration."""
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.sizes, self.array = [Inner()], {"a": [1.0, 2]}, np.ones(2)
            self.config = SimpleNamespace(p=2.0)

        def forward(self, x):
            return self.parts[0](x) * self.sizes["a"][0] * self.array[0] * self.config.p

    a, b = Plain(), Plain()
    g = make_graph(lambda self, x: self.m(x) * self.scale, m=b)
    g.scale, x = 2.0, flow.ones(1, 3)
    with pytest.warns(UserWarning, match="not registered"):
        g(x)
    changes = [lambda m: setattr(m.parts[0], "k", 3.0), lambda m: m.sizes["a"].__setitem__(0, 5.0),
               lambda m: m.array.fill(2), lambda m: setattr(m.config, "p", 0.5),
               lambda m: m.parts.__setitem__(0, Inner())]
    for change in changes:
        change(a), change(b)
        with pytest.warns(UserWarning, match="not registered"):
            assert g(x).tolist() == (a(x) * 2).tolist()
    g.scale = 3.0
    with pytest.warns(UserWarning, match="not registered"):
        assert g(x).tolist() == (a(x) * 3).tolist()


def test_changed_options_and_modules_of_the_graph_are_detected():
    a, b, (oa, ob) = twins({"norm"}, True)
    g, x = make_graph(build_of(lambda x: x, True), ob, m=b), flow.ones(4, 3)
    assert g(x).shape == ()
    g.config.set_gradient_accumulation_steps(2)
    assert g(x).shape == (2,)
    h = make_graph(forward, m=nn.Identity())
    h(x)
    h.m = nn.Sequential(nn.Hardtanh(0.0, 0.25))
    assert h(x).tolist() == [[0.25] * 3] * 4


def test_two_graphs_of_one_module_detect_changes_by_each_other():
    a, b, _ = twins({"attribute_rebound", "first_value", "buffer_rebound"}, False)
    g, h, x = (make_graph(forward, m=b), make_graph(lambda self, x: self.m(x) + self.m.cache, m=b),
               flow.ones(2, 3))
    for _ in range(3):
        for call, want in (g, lambda x: a(x)), (h, lambda x: a(x) + a.cache):
            np.testing.assert_allclose(call(x).numpy(), want(x).detach().numpy(), rtol=1e-5)
            assert_same_program_state(a, b)


def test_reassigned_attributes_leave_the_old_tensors_unchanged():
    """Assigning another tensor to an attribute does not write to the old tensor, which belongs to the
    program.
    """
    m, zero, x = ChangingNet({"attribute_rebound"}), flow.zeros(3), flow.ones(2, 3)
    m.cache = zero
    g = make_graph(forward, m=m)
    first = [g(x).tolist(), g(x).tolist(), g(x).tolist()]
    kept, value = m.cache, m.cache.tolist()
    g(x)
    assert kept.tolist() == value and zero.tolist() == [0] * 3
    m.cache = zero
    np.testing.assert_allclose([g(x).tolist(), g(x).tolist(), g(x).tolist()], first, rtol=1e-6)


def test_attributes_are_state_of_the_graph():
    """state_dict holds the current value of an attribute, and a graph that loads it continues from there."""
    a, b, _ = twins({"attribute_rebound"}, False)
    g, h, x = make_graph(forward, m=a), make_graph(forward, m=b), flow.ones(2, 3)
    for _ in range(3):
        g(x)
    h.load_state_dict({k: v if isinstance(v, dict) else v.clone() for k, v in g.state_dict().items()})
    for _ in range(3):
        assert g(x).tolist() == h(x).tolist()


def test_lazy_values_stored_in_a_module_are_refused():
    class Keeps(nn.Module):
        def forward(self, x):
            self.all = [x * 2]
            return x

    m, x = Keeps(), flow.ones(2)
    with pytest.raises(UnsupportedError, match=r"leaves a value of the graph in m.all"):
        make_graph(forward, m=m)(x)
    a, _, (optimizer, _) = twins({"attribute_rebound"}, True)
    g = make_graph(build_of(lambda x: x, True), optimizer, m=a, config={"set_gradient_accumulation_steps": 2})
    with pytest.raises(UnsupportedError, match=r"gives m.cache another tensor, in micro-batches"):
        g(flow.ones(4, 3))
    assert a.cache.tolist() == [0] * 3


def test_repeated_tracing_warns_ten_times(capsys):
    m, x = ChangingNet({"number"}), flow.ones(2, 3)
    g = make_graph(forward, m=m)
    for _ in range(15):
        g(x)
    said = capsys.readouterr().err.splitlines()
    assert m.n == 17 and len(said) == 10 and "later reasons are not printed" in said[-1]
    assert all(line.startswith(f"nn.Graph {g.name}: tracing build again because build itself changes m.n")
               for line in said)


@pytest.mark.parametrize("make", [lambda: nn.Conv2d(2, 2, 3, padding=1), lambda: nn.ConvTranspose1d(2, 2, 3),
                                  nn.ReLU6,
                                  lambda: nn.BatchNorm2d(2), lambda: nn.LSTM(2, 2),
                                  lambda: nn.MultiheadAttention(4, 2),
                                  lambda: nn.TransformerEncoderLayer(4, 2), lambda: nn.LayerNorm(4),
                                  flow.vision.models.mobilenet_v2, flow.vision.models.resnet18])
def test_library_modules_have_no_state_to_compare_at_every_call(make):
    """A list or dict can change unnoticed, so each call compares it; with many modules, this takes longer
    than a kernel.
    """
    assert not [(type(m).__name__,
                 name) for m in make().modules() for name, x in changes.attributes(m).items()
                if changes.is_mutable(x)]
