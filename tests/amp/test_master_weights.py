"""Master weights: training 16-bit parameters equals, bit for bit, training float32 weights that are rounded
for the forward pass. Covers every optimizer of both generations, eagerly, in a graph, and in a job; small
steps; saved states.
"""
import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, fresh_session  # noqa: F401
from flowedu import amp, nn
from flowedu.errors import FlowError

HALVES = (flow.float16, flow.bfloat16)
OPTIMIZERS = {
    "SGD": lambda p, **o: flow.optim.SGD(p, lr=0.05, **o),
    "decay": lambda p, **o: flow.optim.SGD(p, lr=0.05, weight_decay=0.1, maximize=True, **o),
    "momentum": lambda p, **o: flow.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, **o),
    "Adam": lambda p, **o: flow.optim.Adam(p, lr=0.01, **o),
    "amsgrad": lambda p, **o: flow.optim.Adam(p, lr=0.01, amsgrad=True, **o),
    "AdamW": lambda p, **o: flow.optim.AdamW(p, lr=0.01, weight_decay=0.1, **o),
    "LAMB": lambda p, **o: flow.optim.LAMB(p, lr=0.01, **o),
    "RMSprop": lambda p, **o: flow.optim.RMSprop(p, lr=0.01, **o),
    "centered": lambda p, **o: flow.optim.RMSprop(p, lr=0.01, centered=True, **o),
    "Adagrad": lambda p, **o: flow.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.1, **o),
    "Adadelta": lambda p, **o: flow.optim.Adadelta(p, lr=1.0, **o),
}
INPUTS = np.random.default_rng(0).normal(size=(8, 4, 3)).astype("f4")


def start(half, seed=1):
    """Return values that 16 bits represent exactly."""
    rng = np.random.default_rng(seed)
    return [flow.tensor(rng.normal(size=s).astype("f4")).to(half).float() for s in ((3, 3), (3,))]


class Affine(nn.Module):
    """Affine layer with parameters of `dtype` that computes in `half`."""

    def __init__(self, half, dtype):
        super().__init__()
        w, b = start(half)
        self.w, self.b, self.half = nn.Parameter(w.to(dtype)), nn.Parameter(b.to(dtype)), half

    def forward(self, x):
        return ((x.to(self.half) @ self.w.to(self.half) + self.b.to(self.half)).float() ** 2).mean()


def train_eagerly(model, optimizer, inputs):
    for x in inputs:
        model(flow.tensor(x)).backward()
        optimizer.step()
        optimizer.zero_grad()


def train_in_graph(model, optimizer, inputs, state=None) -> dict:
    """Train and return the final state; `state`: a graph state to continue from."""
    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x)
            loss.backward()
            return loss

    step = Step()
    if state is not None:
        step.load_state_dict(state)
    for x in inputs:
        step(flow.tensor(x))
    return step.state_dict()


def copy_as_arrays(tensors) -> list[np.ndarray]:
    return [t.detach().float().numpy().copy() for t in tensors]


def equal(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("how", [train_eagerly, train_in_graph])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_equals_float32_weights_rounded_for_the_forward_pass(name, how, half):
    narrow, wide = Affine(half, half), Affine(half, flow.float32)
    mine = OPTIMIZERS[name](narrow.parameters(), master_weights=True)
    how(narrow, mine, INPUTS)
    how(wide, OPTIMIZERS[name](wide.parameters()), INPUTS)
    equal(copy_as_arrays(mine.state[p]["master_weight"] for p in narrow.parameters()),
          copy_as_arrays(wide.parameters()))
    equal(copy_as_arrays(narrow.parameters()), copy_as_arrays(p.to(half) for p in wide.parameters()))
    for p in narrow.parameters():
        assert p.dtype is half and {t.dtype for t in mine.state[p].values()} == {flow.float32}


@pytest.mark.parametrize("how", [train_eagerly, train_in_graph])
def test_small_steps_accumulate_only_with_master_weights(how):
    """1e-4 is less than half the distance from 1.0 to its neighbor in bfloat16, which is 2^-8 below."""
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.ones(4).bfloat16())

        def forward(self, x):
            return (self.w.float() + x).sum()

    for wants in (True, False):
        model = Sum()
        how(model, flow.optim.SGD(model.parameters(), lr=1e-4, master_weights=wants),
            np.zeros((100, 4), "f4"))
        assert model.w.float().tolist() == [flow.tensor(1 - 100 * 1e-4).bfloat16().float().item() if wants
                                            else 1.0] * 4


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", [train_eagerly, train_in_graph])
def test_training_continues_from_a_saved_state(name, how, half, tmp_path):
    one, other = Affine(half, half), Affine(half, half)
    first, second = (OPTIMIZERS[name](m.parameters(), master_weights=True) for m in (one, other))
    train_eagerly(one, first, INPUTS[:4])
    flow.save({"model": one.state_dict(), "optimizer": first.state_dict()}, tmp_path / "half")
    found = flow.load(tmp_path / "half")
    other.load_state_dict(found["model"])
    second.load_state_dict(found["optimizer"])
    for model, optimizer in ((one, first), (other, second)):
        how(model, optimizer, INPUTS[4:])
    equal(copy_as_arrays(first.state[p]["master_weight"] for p in one.parameters()),
          copy_as_arrays(second.state[p]["master_weight"] for p in other.parameters()))


def test_a_graphs_state_includes_master_weights():
    def trained(inputs, state=None):
        model = Affine(flow.bfloat16, flow.bfloat16)
        optimizer = flow.optim.Adam(model.parameters(), lr=0.01, master_weights=True)
        return train_in_graph(model, optimizer, inputs, state)

    half, whole = trained(INPUTS[:4]), trained(INPUTS)
    assert half["model.w-master"].dtype is half["model.w-m"].dtype is flow.float32
    again = trained(INPUTS[4:], half)
    assert {*again} == {*whole}
    equal(*(copy_as_arrays([s[n] for n in s if n.startswith("model.")] + [*s["model"].values()])
            for s in (again, whole)))


def test_training_continues_from_values_written_to_a_parameter():
    """A parameter that differs from its rounded master weight was written, and replaces the master weight."""
    a, b = Affine(flow.bfloat16, flow.bfloat16), Affine(flow.bfloat16, flow.bfloat16)
    one, other = (flow.optim.SGD(m.parameters(), lr=0.05, master_weights=True) for m in (a, b))
    train_eagerly(a, one, INPUTS[:3])
    for m in (a, b):
        m.load_state_dict({"w": flow.full((3, 3), 0.3).bfloat16(), "b": flow.zeros(3).bfloat16()})
    for m, o in ((a, one), (b, other)):
        train_eagerly(m, o, INPUTS[3:])
    equal(copy_as_arrays(a.parameters()), copy_as_arrays(b.parameters()))


def test_wider_parameters_have_no_master_weights_and_the_option_may_be_set_later():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Parameter(flow.ones(3).to(t))
                                      for t in (flow.bfloat16, flow.float32, flow.float64))

        def forward(self, x):
            return ((self.a.double() * self.b.double() * self.c + x.double()) ** 2).sum()

    xs = np.linspace(-1, 1, 18).reshape(6, 3).astype("f4")
    for make in (lambda p, **o: flow.optim.Adam(p, lr=0.1, **o),
                 lambda p, **o: flow.optim.SGD(p, lr=0.1, **o)):
        found = []
        for how in (train_eagerly, train_in_graph):
            m = Mixed()
            o = make(m.parameters(), master_weights=True)
            how(m, o, xs)
            assert ("master_weight" in o.state[m.a] and all("master_weight" not in o.state.get(p, {})
                                                            for p in (m.b, m.c)))
            found.append(copy_as_arrays(m.parameters()))
        equal(*found)
        late = Mixed()
        o = make(late.parameters())
        train_eagerly(late, o, xs[:3])
        o.param_groups[0]["master_weights"] = True
        train_eagerly(late, o, xs[3:])
        assert {t.dtype for t in o.state[late.a].values()} == {flow.float32}


def test_a_step_inside_autocast_writes_the_parameters():
    for wants in (True, False):
        m = Affine(flow.bfloat16, flow.bfloat16)
        o = flow.optim.SGD([{"params": [m.w]}, {"params": [m.b]}], lr=0.5, momentum=0.9, master_weights=wants)
        before = copy_as_arrays(m.parameters())
        with amp.autocast("cpu", dtype=flow.bfloat16):
            train_eagerly(m, o, INPUTS[:2])
        assert all((a != b).any() for a, b in zip(before, copy_as_arrays(m.parameters())))


JOBS = {
    "SGD": lambda **o: flow.optimizer.SGD(constant_rate(0.05), momentum=0, **o),
    "momentum": lambda **o: flow.optimizer.SGD(constant_rate(0.05), **o),
    "SGDW": lambda **o: flow.optimizer.SGDW(constant_rate(0.05), weight_decay=0.1, **o),
    "Adam": lambda **o: flow.optimizer.Adam(constant_rate(0.01), do_bias_correction=True, **o),
    "AdamW": lambda **o: flow.optimizer.AdamW(constant_rate(0.01), weight_decay=0.1, **o),
    "LazyAdam": lambda **o: flow.optimizer.LazyAdam(constant_rate(0.01), **o),
    "RMSProp": lambda **o: flow.optimizer.RMSProp(constant_rate(0.01), centered=True, **o),
    "LARS": lambda **o: flow.optimizer.LARS(constant_rate(0.1), **o),
    "LAMB": lambda **o: flow.optimizer.LAMB(constant_rate(0.01), **o),
}


def in_a_job(name, half, kind, eager, **options):
    """Return the variables after training in `half` with variables of type `kind`."""
    flow.clear_default_session()
    flow.enable_eager_execution(eager)
    first = [t.numpy() for t in start(half)]

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
        penalty = flow.regularizers.l1_l2(0.01, 0.1)
        w = flow.get_variable("w", (3, 3), kind, constant(first[0]), penalty)
        b = flow.get_variable("b", (3,), kind, constant(first[1]))
        y = flow.cast(flow.matmul(flow.cast(x, half), flow.cast(w, half)) + flow.cast(b, half), flow.float32)
        loss = y * y
        JOBS[name](**options).minimize(loss)
        return loss

    for x in INPUTS[:5]:
        train(x)
    return {n: v.numpy() for n, v in flow.get_all_variables().items()}


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
def test_master_weights_of_job_variables(name, eager, half):
    narrow = in_a_job(name, half, half, eager, master_weights=True)
    wide = in_a_job(name, half, flow.float32, eager)
    for n in ("w", "b"):
        np.testing.assert_array_equal(narrow[f"{n}-master"], wide[n])
        np.testing.assert_array_equal(narrow[n].astype("f4"), flow.tensor(wide[n]).to(half).float().numpy())


@pytest.mark.parametrize("call", [
    lambda p: flow.optim.SGD(p, lr=0.1, master_weights="bfloat16"),
    lambda p: flow.optim.Adam([{"params": p, "master_weights": flow.float32}]),
    lambda p: flow.optimizer.SGD(constant_rate(0.1), master_weights=1)])
def test_invalid_values_of_master_weights_are_refused(call):
    with pytest.raises(FlowError, match="master_weights") as e:
        call([nn.Parameter(flow.ones(3).bfloat16())])
    assert "float32 cop" in e.value.expected


def test_an_incompatible_state_names_the_missing_entries():
    p = nn.Parameter(flow.ones(3).bfloat16())
    o = flow.optim.SGD([p], lr=0.1, momentum=0.9, master_weights=True)
    p.grad = flow.ones(3).bfloat16()
    o.step()
    state = o.state_dict()
    del state["state"][0]["master_weight"]
    with pytest.raises(FlowError, match="another optimizer") as e:
        o.load_state_dict({**state, "state": {"step": 1, 0: state["state"][0]}})
    assert "master_weight" in e.value.expected


@pytest.mark.parametrize("how", ["eager", "graph"])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_master_weights_of_global_parameters(name, how, world):
    """Master weights have the layout of their parameters."""
    world(2)
    place, everywhere = flow.placement("cpu", ranks=[0, 1]), flow.sbp.broadcast
    plain = Affine(flow.bfloat16, flow.bfloat16)
    own = OPTIMIZERS[name](plain.parameters(), master_weights=True)
    train_eagerly(plain, own, INPUTS[:4])
    for layout in (flow.sbp.broadcast, flow.sbp.split(0)):
        model = Affine(flow.bfloat16, flow.bfloat16)
        for key in ("w", "b"):
            whole = getattr(model, key).detach().to_global(place, everywhere)
            setattr(model, key, nn.Parameter(whole.to_global(place, layout)))
        optimizer = OPTIMIZERS[name](model.parameters(), master_weights=True)

        class Step(nn.Graph):
            def __init__(self, model=model, optimizer=optimizer):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)

            def build(self, x):
                loss = self.model(x)
                loss.backward()
                return loss

        step = Step()
        for x in INPUTS[:4]:
            x = flow.tensor(x).to_global(place, everywhere)
            if how == "graph":
                step(x)
                continue
            model(x).backward()
            optimizer.step()
            optimizer.zero_grad()
        for p, q in zip(model.parameters(), plain.parameters()):
            copy = optimizer.state[p]["master_weight"]
            assert copy.sbp == p.sbp and copy.dtype is flow.float32
            np.testing.assert_allclose(copy.numpy(), own.state[q]["master_weight"].numpy(),
                                       rtol=2e-2, atol=5e-3)  # parts are rounded before they are summed
            assert flow.equal(flow.tensor(copy.numpy()).bfloat16().float(),
                              flow.tensor(p.detach().float().numpy()))


@pytest.mark.parametrize("how", ["eager", "graph"])
def test_a_float32_parameter_is_its_own_master_weight(how):
    """After model.float(), an optimizer drops the copies and goes on."""
    model = Affine(flow.float16, flow.float16)
    optimizer = OPTIMIZERS["Adam"](model.parameters(), master_weights=True)
    train_eagerly(model, optimizer, INPUTS[:2])
    model.float()
    if how == "eager":
        optimizer.param_groups[0]["weight_decay"] = 0.1
        train_eagerly(model, optimizer, INPUTS[2:4])
    else:
        train_in_graph(model, optimizer, INPUTS[2:4])
    for p in model.parameters():
        assert p.dtype is flow.float32 and set(optimizer.state[p]) == {"exp_avg", "exp_avg_sq"}
