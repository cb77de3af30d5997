"""Law: a parameter or buffer that build writes in place has the same values, gradients, and steps as eagerly;
gradient hooks of parameters are refused, whenever they are registered.
"""
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.errors import UnsupportedError

WRITES = {
    "clamp": lambda w: w.clamp_(-0.2, 0.2),
    "mul": lambda w: w.mul_(1.0),
    "decay": lambda w: w.mul_(0.9),
    "normalize": lambda w: w.copy_(w / w.norm()),
    "zero a row": lambda w: w[0].zero_(),
    "fill a column": lambda w: w[:, 1].fill_(0.1),
    "add": lambda w: w.add_(0.25),
}
OPTIMIZERS = {
    "sgd": lambda ps: flow.optim.SGD(ps, lr=0.25),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda ps: flow.optim.Adam(ps, lr=0.05),
    "adamw": lambda ps: flow.optim.AdamW(ps, lr=0.05, weight_decay=0.1),
}
TIMES = ("before", "between", "after the last use", "after backward")
ROLES = ("trained", "frozen", "buffer")


class WritingNet(nn.Module):
    def __init__(self, role: str):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3, bias=False), nn.Linear(3, 2)
        value = self.first.weight.detach().clone()
        if role == "buffer":
            self.register_buffer("written", value)
        else:
            self.written = nn.Parameter(value, requires_grad=role == "trained")

    def step(self, x, writes: list[tuple[str, str]]):
        def write(time):
            for when, name in writes:
                if when == time:
                    with flow.no_grad():
                        WRITES[name](self.written)

        write("before")
        # The input needs no gradient, so that eager mode saves no weight that is written later.
        early = x @ self.written
        write("between")
        late = x @ self.written
        write("after the last use")
        loss = self.last(self.first(x) + early * 0.5 + late).square().mean()
        loss.backward()
        write("after backward")
        return loss


def graph_of(net, optimizer, writes, steps: int = 1):
    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net
            self.add_optimizer(optimizer)
            if steps > 1:
                self.config.set_gradient_accumulation_steps(steps)

        def build(self, x):
            return self.net.step(x, writes)

    return Step()


def assert_same_states(a, b) -> None:
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values()):
        assert flow.allclose(x, y, rtol=1e-5, atol=1e-6), name


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@given(role=st.sampled_from(ROLES), data=st.data())
def test_steps_with_writes_equal_eager_steps(optimizer, role, data):
    writes = data.draw(st.lists(st.tuples(st.sampled_from(TIMES), st.sampled_from(list(WRITES))), min_size=1,
                                max_size=3))
    flow.manual_seed(0)
    eager, x = WritingNet(role), flow.randn(4, 3)
    compiled = copy.deepcopy(eager)
    eager_optimizer = OPTIMIZERS[optimizer]([p for p in eager.parameters() if p.requires_grad])
    graph = graph_of(compiled, OPTIMIZERS[optimizer]([p for p in compiled.parameters() if p.requires_grad]),
                     writes)
    for _ in range(3):
        loss = eager.step(x, writes)
        eager_optimizer.step()
        eager_optimizer.zero_grad()
        assert flow.allclose(graph(x), loss, rtol=1e-5, atol=1e-6)
        assert_same_states(eager, compiled)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("when", TIMES)
def test_writes_in_micro_batches(role, when):
    """Each micro-batch writes, like each pass of an eager loop, or the graph refuses."""
    writes = [(when, "decay")]
    flow.manual_seed(0)
    eager, x = WritingNet(role), flow.randn(4, 3)
    compiled = copy.deepcopy(eager)
    optimizer = OPTIMIZERS["sgd"]([p for p in eager.parameters() if p.requires_grad])
    graph = graph_of(compiled, OPTIMIZERS["sgd"]([p for p in compiled.parameters() if p.requires_grad]),
                     writes, steps=2)
    for _ in range(2):
        for part in (x[:2], x[2:]):
            eager.step(part, writes)
        for p in eager.parameters():
            if p.grad is not None:
                p.grad /= 2
        optimizer.step()
        optimizer.zero_grad()
        try:
            graph(x)
        except UnsupportedError:
            return
        assert_same_states(eager, compiled)


@pytest.mark.parametrize("make", [
    lambda: nn.Embedding(5, 3, max_norm=0.5),
    lambda: nn.Embedding(5, 3, max_norm=0.3, norm_type=1.0, padding_idx=1),
    lambda: nn.EmbeddingBag(5, 3, max_norm=0.5, mode="sum"),
    lambda: nn.EmbeddingBag(5, 3, max_norm=0.5),
], ids=["embedding", "norm 1", "bag of sums", "bag of means"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_embedding_rows_with_max_norm_are_trained(make, optimizer):
    flow.manual_seed(1)
    eager = make()
    compiled, indices = copy.deepcopy(eager), flow.tensor([[0, 1, 3], [3, 4, 0]])

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.table = compiled
            self.add_optimizer(OPTIMIZERS[optimizer](compiled.parameters()))

        def build(self, i):
            loss = self.table(i).sum(-1).square().mean() - self.table(i).mean()
            loss.backward()
            return loss

    graph, eager_optimizer = Step(), OPTIMIZERS[optimizer](eager.parameters())
    for _ in range(3):
        loss = eager(indices).sum(-1).square().mean() - eager(indices).mean()
        loss.backward()
        eager_optimizer.step()
        eager_optimizer.zero_grad()
        assert flow.allclose(graph(indices), loss, rtol=1e-5, atol=1e-6)
        assert_same_states(eager, compiled)


REGISTER = {
    "hook": lambda p: p.register_hook(lambda g: g * 0),
    "post-accumulate hook": lambda p: p.register_post_accumulate_grad_hook(lambda p: None),
}


@pytest.mark.parametrize("register", REGISTER)
@pytest.mark.parametrize("when", ["before", "in build", "after"])
def test_hooks_of_parameters_are_refused(register, when):
    flow.manual_seed(0)
    net, x, handles = WritingNet("trained"), flow.randn(4, 3), []

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net
            self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.1))

        def build(self, x):
            if when == "in build":
                handles.append(REGISTER[register](net.written))
            return self.net.step(x, [])

    graph = Step()
    if when == "after":
        graph(x)
    if when != "in build":
        handles.append(REGISTER[register](net.written))
    before = net.written.detach().clone()
    with pytest.raises(UnsupportedError,
                       match=r"net\.written has a gradient hook.*(\n.*)*test_parameter_writes\.py"):
        graph(x)
    assert flow.equal(net.written, before)
    for handle in handles:
        handle.remove()
    if when != "in build":
        graph(x)
        assert not flow.equal(net.written, before)


@pytest.mark.parametrize("register", ["hook"])
def test_grad_in_build_refuses_hooks_of_its_inputs(register):
    net = WritingNet("trained")
    REGISTER[register](net.written)

    class Predict(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net

        def build(self, x):
            return flow.autograd.grad((x @ self.net.written).sum(), [net.written])[0]

    with pytest.raises(UnsupportedError, match="gradient hook"):
        Predict()(flow.ones(4, 3))


def test_hooks_of_a_graph_that_only_predicts_are_left_alone():
    net = nn.Linear(3, 2)
    net.weight.register_hook(lambda g: g * 0)

    class Predict(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net

        def build(self, x):
            return self.net(x)

    assert Predict()(flow.ones(4, 3)).shape == (4, 2)
