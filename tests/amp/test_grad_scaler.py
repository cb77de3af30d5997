"""GradScaler: its update rule against a model, its steps against float32 steps, and its state against
PyTorch's.
"""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import amp, nn
from flowedu.errors import FlowError


def scaling(scaler):
    """Return a scaler that has scaled a loss."""
    scaler.scale(flow.ones(()))
    return scaler


def with_gradients(values, lr=1.0):
    p = nn.Parameter(flow.ones(3))
    p.grad = flow.tensor(values)
    return p, flow.optim.SGD([p], lr=lr)


@given(overflows=st.lists(st.booleans(), max_size=12), interval=st.integers(1, 4),
       growth=st.sampled_from([2.0, 3.0]), backoff=st.sampled_from([0.5, 0.25]))
def test_the_scale_falls_on_overflow_and_grows_after_good_steps(overflows, interval, growth, backoff):
    """An overflow skips the step and lowers the scale. After `interval` good steps in a row, the scale
    grows.
    """
    scaler = scaling(amp.GradScaler(8.0, growth, backoff, interval))
    scale, good = 8.0, 0
    for overflow in overflows:
        p, optimizer = with_gradients([math.inf if overflow else scale, 0.0, -scale])
        scaler.step(optimizer)
        scaler.update()
        np.testing.assert_allclose(p.detach().numpy(), [1, 1, 1] if overflow else [0, 1, 2], rtol=0,
                                   atol=1e-6)
        scale, good = (scale * backoff, 0) if overflow else (scale, good + 1)
        if good == interval:
            scale, good = scale * growth, 0
        assert scaler.get_scale() == scale and scaler.state_dict()["_growth_tracker"] == good


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("half", [flow.float32, flow.float16, flow.bfloat16], ids=repr)
def test_any_non_finite_element_is_detected(bad, half):
    for place in range(3):
        values = [1.0, 1.0, 1.0]
        values[place] = bad
        p = nn.Parameter(flow.ones(3, dtype=half))
        p.grad = flow.tensor(values).to(half)
        state = p.detach().clone()
        scaler, optimizer = scaling(amp.GradScaler()), flow.optim.Adam([p])
        scaler.step(optimizer)
        scaler.update()
        assert (flow.equal(p.detach(), state) and scaler.get_scale() == 2.0 ** 15
                and not optimizer.state.get(p))


def test_finite_gradients_whose_sum_overflows_are_accepted():
    p, optimizer = with_gradients([3e38, 3e38, 3e38])
    scaler = scaling(amp.GradScaler(init_scale=1.0))
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1.0 and p.detach().numpy()[0] < -1e38


@pytest.mark.parametrize("clip", [False, True])
def test_scaled_steps_equal_unscaled_steps(clip):
    """Powers of two change no bit."""
    def trained(scaler):
        flow.manual_seed(0)
        m, x = nn.Linear(4, 3), flow.randn(8, 4)
        optimizer = flow.optim.Adam(m.parameters(), lr=0.1)
        for _ in range(5):
            loss = F.cross_entropy(m(x), flow.tensor([0, 1, 2, 0, 1, 2, 0, 1]))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(m.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        return [p.detach().numpy() for p in m.parameters()]

    for a, b in zip(trained(amp.GradScaler()), trained(amp.GradScaler(enabled=False))):
        np.testing.assert_array_equal(a, b)


def test_float16_trains_only_with_a_scale():
    """Gradients of 1e-8 are 0 in float16, unless they are scaled."""
    def moved(scaler):
        flow.manual_seed(0)
        m = nn.Linear(4, 1, bias=False)
        before, optimizer = m.weight.detach().clone(), flow.optim.SGD(m.parameters(), lr=1e6)
        with amp.autocast("cpu", dtype=flow.float16):
            loss = (m(flow.ones(2, 4)).float() * 1e-8).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return (m.weight - before).abs().max().item()

    assert moved(amp.GradScaler(enabled=False)) == 0.0 and moved(amp.GradScaler()) > 1e-3


@pytest.mark.parametrize("call", [
    lambda s, o: (s.unscale_(o), s.unscale_(o)), lambda s, o: (s.step(o), s.step(o)),
    lambda s, o: (s.step(o), s.unscale_(o)), lambda s, o: s.update(),
    lambda s, o: s.step(o, closure=lambda: 1), lambda s, o: s.scale("loss"),
    lambda s, o: s.load_state_dict({}), lambda s, o: amp.GradScaler(growth_factor=0.5),
    lambda s, o: amp.GradScaler(backoff_factor=2.0), lambda s, o: amp.GradScaler(init_scale=-1.0)])
def test_calls_out_of_order_raise_with_a_fix(call):
    with pytest.raises(FlowError) as e:
        call(scaling(amp.GradScaler()), with_gradients([1.0, 1.0, 1.0])[1])
    assert e.value.expected and e.value.fix


def test_states_are_restored_and_several_optimizers_share_a_scale():
    a = scaling(amp.GradScaler(init_scale=4.0, growth_interval=3))
    good, bad = with_gradients([4.0, 4.0, 4.0]), with_gradients([math.nan, 1.0, 1.0])
    for _, optimizer in (good, bad):
        a.step(optimizer)
    a.update()
    assert a.get_scale() == 2.0 and good[0][0] == 0.0 and bad[0][1] == 1.0
    b = amp.GradScaler()
    b.load_state_dict(a.state_dict())
    assert b.state_dict() == a.state_dict()
    assert (amp.GradScaler(enabled=False).state_dict() == {}
            and amp.GradScaler(enabled=False).get_scale() == 1.0)


def test_a_static_scale_never_changes():
    scaler = scaling(amp.StaticGradScaler(16.0))
    for values in ([math.inf, 1.0, 1.0], [16.0, 16.0, 16.0]):
        p, optimizer = with_gradients(values)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 16.0
    assert p[0] == 0.0


@pytest.mark.torch
def test_the_scale_equals_pytorchs():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    ours, theirs = amp.GradScaler(1024.0, 2.0, 0.5, 3), torch.amp.GradScaler("cpu", 1024.0, 2.0, 0.5, 3)
    p, q = nn.Parameter(flow.ones(3)), torch.nn.Parameter(torch.ones(3))
    mine, other = flow.optim.SGD([p], lr=0.1), torch.optim.SGD([q], lr=0.1)
    for step in range(12):
        g = rng.normal(size=3).astype("f4") * 1024
        if step in (2, 3, 9):
            g[step % 3] = np.inf
        p.grad, q.grad = flow.tensor(g), torch.tensor(g)
        ours.scale(flow.ones(())), theirs.scale(torch.ones(()))
        for scaler, optimizer in ((ours, mine), (theirs, other)):
            scaler.step(optimizer)
            scaler.update()
        assert ours.state_dict() == theirs.state_dict()
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6)
    amp.GradScaler().load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
