"""set_grad_scaler: a graph's steps equal those of the eager loop with the same scaler. An overflow skips the
step, halves the scale, and changes nothing else; states are restored.
"""
import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import amp, nn
from flowedu.errors import FlowError

OPTIMIZERS = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.1),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "clipped": lambda p: flow.optim.SGD([{"params": [*p], "clip_grad_max_norm": 0.5,
                                          "clip_grad_norm_type": 2.0}], lr=0.1),
    "Adam": lambda p: flow.optim.Adam(p, lr=0.01, amsgrad=True),
    "LAMB": lambda p: flow.optim.LAMB(p, lr=0.01),
    "RMSprop": lambda p: flow.optim.RMSprop(p, lr=0.01, centered=True),
    "masters": lambda p: flow.optim.AdamW(p, lr=0.01, master_weights=True),
}
SCALERS = {
    "dynamic": lambda: amp.GradScaler(2.0 ** 10, growth_interval=2),
    "static": lambda: amp.StaticGradScaler(2.0 ** 6),
    "other factors": lambda: amp.GradScaler(2.0 ** 8, 4.0, 0.25, 3),
    "off": lambda: amp.GradScaler(enabled=False),
}
BAD = (1, 4, 5)  # steps with an input whose square overflows float16
DATA = np.random.default_rng(0).normal(size=(9, 8, 3)).astype("f4")
for _i in BAD:
    DATA[_i, 2, 1] = np.inf


class LossNet(nn.Module):
    def __init__(self, dtype=flow.float32):
        super().__init__()
        flow.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)

    def forward(self, x):
        w = self.body[0].weight
        return (self.body(x.to(w.dtype)).float() ** 2).mean() + (w.float() * x[2, 1]).sum()


class Step(nn.Graph):
    def __init__(self, net, optimizer, scaler, schedule=None, half=None):
        super().__init__()
        self.net = net
        self.add_optimizer(optimizer, **({"lr_sch": schedule} if schedule else {}))
        self.set_grad_scaler(scaler)
        if half is not None:
            self.config.enable_amp(True, dtype=half)

    def build(self, x):
        loss = self.net(x)
        loss.backward()
        return loss


def train_eagerly(net, optimizer, scaler, data, half=None, each=lambda: None):
    for x in data:
        with amp.autocast("cpu", dtype=half or flow.float16, enabled=half is not None):
            loss = net(flow.tensor(x))
        scaler.scale(loss).backward()
        if optimizer.param_groups[0].get("clip_grad_max_norm") is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        each()


def train_in_graph(net, optimizer, scaler, data, half=None, each=lambda: None):
    step = Step(net, optimizer, scaler, half=half)
    for x in data:
        step(flow.tensor(x))
        each()
    return step


def everything(net, optimizer, scaler) -> list:
    found = [*net.parameters(), *(t for p in net.parameters() for t in optimizer.state.get(p, {}).values())]
    return [optimizer.count_.item(), scaler.state_dict(), *(t.detach().float().numpy().copy() for t in found)]


def are_equal_runs(a, b) -> bool:
    return a[:2] == b[:2] and len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a[2:], b[2:]))


@pytest.mark.parametrize("half", [None, flow.float16, flow.bfloat16], ids=repr)
@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_graph_trains_as_the_eager_loop_does(name, scaler, half):
    def trained(how):
        net, s = LossNet(flow.bfloat16 if name == "masters" else flow.float32), SCALERS[scaler]()
        optimizer, seen = OPTIMIZERS[name](net.parameters()), []
        how(net, optimizer, s, data, half, lambda: seen.append(everything(net, optimizer, s)))
        return seen

    data = DATA if scaler != "off" else np.delete(DATA, BAD, 0)
    for a, b in zip(trained(train_eagerly), trained(train_in_graph), strict=True):
        assert a[:2] == b[:2]
        for x, y in zip(a[2:], b[2:], strict=True):
            # plans add in another order, and bfloat16 rounds the sums
            near = 5e-4 if name == "masters" else 1e-6
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=near)


@pytest.mark.parametrize("how", [train_eagerly, train_in_graph])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_overflow_changes_only_the_scale(name, how):
    net, scaler, seen = LossNet(), amp.GradScaler(2.0 ** 10), []
    optimizer = OPTIMIZERS[name](net.parameters())
    how(net, optimizer, scaler, DATA, None, lambda: seen.append(everything(net, optimizer, scaler)))
    for i in range(1, len(DATA)):
        before, after = seen[i - 1], seen[i]
        scales = before[1].pop("scale"), after[1]["scale"]
        if i in BAD:
            assert scales[1] == scales[0] / 2 and after[1]["_growth_tracker"] == 0
            assert before[0] == after[0] and all(np.array_equal(x, y) for x, y in zip(before[2:], after[2:]))
        else:
            assert scales[1] == scales[0] and after[0] == before[0] + 1
            assert any((x != y).any() for x, y in zip(before[2:], after[2:]))
    assert all(np.isfinite(x).all() for x in seen[-1][2:])


def test_schedules_and_other_optimizers_count_only_taken_steps():
    net = LossNet()
    first = flow.optim.SGD(net.body[0].parameters(), lr=1.0)
    second = flow.optim.SGD(net.body[2].parameters(), lr=1.0)
    schedule = flow.optim.lr_scheduler.StepLR(first, 2, 0.5)
    step = Step(net, first, amp.GradScaler(4.0), schedule)
    step.add_optimizer(second)
    made = 0
    for i, x in enumerate(DATA):
        step(flow.tensor(x))
        made += i not in BAD
        assert first.count_.item() == second.count_.item() == made
        assert first.param_groups[0]["lr"] == 0.5 ** (made // 2)


def test_micro_batches_are_scaled_equally():
    found = []
    class Mean(LossNet):
        def forward(self, x):
            return (self.body(x) ** 2).mean()

    for scaler in (amp.GradScaler(enabled=False), amp.GradScaler(2.0 ** 9)):
        net = Mean()
        step = Step(net, flow.optim.SGD(net.parameters(), lr=0.1), scaler)
        step.config.set_gradient_accumulation_steps(2)
        for x in np.delete(DATA, BAD, 0):
            step(flow.tensor(x))
        found.append([p.detach().numpy() for p in net.parameters()])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_a_state_is_restored_and_eager_steps_continue_with_the_same_scaler():
    def new():
        net = LossNet()
        return net, flow.optim.Adam(net.parameters(), lr=0.01), amp.GradScaler(2.0 ** 10, growth_interval=3)

    whole, parts, mixed = new(), new(), new()
    train_in_graph(*whole, DATA)
    state = train_in_graph(*parts, DATA[:4]).state_dict()
    assert state["System-Train-GradScaler-Scale"].item() == parts[2].get_scale() == 2.0 ** 9
    again = new()
    step = Step(*again)
    step.load_state_dict(state)
    for x in DATA[4:]:
        step(flow.tensor(x))
    train_in_graph(*mixed, DATA[:4])
    train_eagerly(*mixed, DATA[4:])
    assert are_equal_runs(everything(*again), everything(*whole))
    for a, b in zip(everything(*mixed)[2:], everything(*whole)[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert everything(*mixed)[:2] == everything(*whole)[:2]


def test_a_rule_that_changes_is_followed():
    net, scaler = LossNet(), amp.GradScaler(2.0 ** 10)
    step = Step(net, flow.optim.SGD(net.parameters(), lr=0.1), scaler)
    step(flow.tensor(DATA[1]))
    scaler.set_backoff_factor(0.125)
    step(flow.tensor(DATA[1]))
    assert scaler.get_scale() == 2.0 ** 6
    scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0, "growth_interval": 1})
    step(flow.tensor(DATA[0]))
    assert scaler.get_scale() == 4.0
    scaler.update(16.0)
    step(flow.tensor(DATA[0]))
    assert scaler.get_scale() == 32.0


def test_a_scale_at_the_float32_limit_is_kept():
    net, scaler = LossNet(), amp.GradScaler(2.0 ** 127, growth_interval=1)
    step = Step(net, flow.optim.SGD(net.parameters(), lr=0.0), scaler)
    x = DATA[0] * 2.0 ** -20
    step.net.body[0].weight.data.mul_(2.0 ** -30)
    for _ in range(3):
        step(flow.tensor(x * 0))
        assert np.isfinite(scaler.get_scale())


def test_misuse_raises_with_a_fix():
    net = LossNet()

    class Bare(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net
            self.set_grad_scaler(amp.GradScaler())

        def build(self, x):
            return self.net(x)

    step = Step(net, flow.optim.SGD(net.parameters(), lr=0.1), amp.GradScaler())
    step(flow.tensor(DATA[0]))
    for call, word in ((lambda: step.set_grad_scaler(amp.GradScaler()), "compiled"),
                       (lambda: Bare().set_grad_scaler(2.0), "no grad scaler"),
                       (lambda: Bare()(flow.tensor(DATA[0])), "no optimizer")):
        with pytest.raises(FlowError, match=word) as e:
            call()
        assert e.value.expected and e.value.fix


def test_float16_trains_in_a_graph_only_with_a_scaler():
    """Gradients of 1e-8 are 0 in float16."""
    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.ones(4, 1))

        def forward(self, x):
            return F.linear(x, self.w.t()).float().mean() * 1e-8

    moved = []
    for scaler in (amp.GradScaler(enabled=False), amp.GradScaler()):
        net = Tiny()
        step = Step(net, flow.optim.SGD(net.parameters(), lr=1e6), scaler, half=flow.float16)
        step(flow.ones(2, 4))
        moved.append((net.w - 1).abs().max().item())
    assert moved[0] == 0.0 and moved[1] > 1e-3
