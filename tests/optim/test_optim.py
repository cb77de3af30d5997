"""flow.optim: OneFlow's formulas in NumPy, groups, states, and errors."""
import copy
import pickle

import numpy as np
import pytest

import flowedu as flow
from flowedu import optim
from flowedu.errors import FlowError

ALL = [optim.SGD, optim.Adam, optim.AdamW, optim.LAMB, optim.RMSprop, optim.Adagrad, optim.Adadelta]


def parameter(*shape, seed=0):
    # float64
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def run_optimizer(make, steps=5, shape=(4, 3)):
    """Return (parameter after some steps, [gradients], initial value) of an optimizer over one float64
    parameter.
    """
    w = parameter(*shape)
    first, optimizer, grads = w.numpy().copy(), make([w]), []
    for i in range(steps):
        grads.append(np.random.default_rng(10 + i).standard_normal(shape))
        w.grad = flow.tensor(grads[-1])
        optimizer.step()
    return w.numpy(), grads, first


# --- formulas
# --------------------------------------------------------------------------------------------------------

def test_dampening_holds_from_the_first_step():
    got, grads, w = run_optimizer(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3,
                                                      weight_decay=0.2))
    b = np.zeros_like(w)
    for g in grads:
        b = 0.9 * b + 0.7 * (g + 0.2 * w)
        w = w - 0.1 * b
    np.testing.assert_allclose(got, w, rtol=1e-12)


@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_has_eps_under_the_root(centered):
    got, grads, w = run_optimizer(lambda p: optim.RMSprop(p, lr=0.1, alpha=0.8, eps=0.3, weight_decay=0.2,
                                                          centered=centered))
    v, a = np.zeros_like(w), np.zeros_like(w)
    for g in grads:
        g = g + 0.2 * w
        v, a = 0.8 * v + 0.2 * g * g, 0.8 * a + 0.2 * g
        w = w - 0.1 * g / np.sqrt(v - centered * a * a + 0.3)
    np.testing.assert_allclose(got, w, rtol=1e-12)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_without_bias_correction(amsgrad):
    got, grads, w = run_optimizer(lambda p: optim.Adam(p, lr=0.1, betas=(0.6, 0.7), do_bias_correction=False,
                                                       amsgrad=amsgrad))
    m, v, top = (np.zeros_like(w) for _ in range(3))
    for g in grads:
        m, v = 0.6 * m + 0.4 * g, 0.7 * v + 0.3 * g * g
        top = np.maximum(top, v)
        w = w - 0.1 * m / (np.sqrt(top if amsgrad else v) + 1e-8)
    np.testing.assert_allclose(got, w, rtol=1e-12)


@pytest.mark.parametrize("adam_w_mode", [True, False])
@pytest.mark.parametrize("correct", [True, False])
def test_lamb(adam_w_mode, correct):
    got, grads, w = run_optimizer(lambda p: optim.LAMB(p, lr=0.1, betas=(
        0.6, 0.7), eps=1e-3, weight_decay=0.2, adam_w_mode=adam_w_mode, do_bias_correction=correct))
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        g = g if adam_w_mode else g + 0.2 * w
        m, v = 0.6 * m + 0.4 * g, 0.7 * v + 0.3 * g * g
        c1, c2 = (1 - 0.6 ** t, 1 - 0.7 ** t) if correct else (1, 1)
        a = m / c1 / (np.sqrt(v / c2) + 1e-3)
        rate = 0.1 * np.linalg.norm(w) / np.linalg.norm(a)
        w = w - rate * (a + (0.2 * w if adam_w_mode else 0))
    np.testing.assert_allclose(got, w, rtol=1e-11)


def test_results_recorded_from_oneflow():
    """Linear(2, 1), mean square error, and SGD with momentum, recorded from OneFlow 0.9."""
    w, b = flow.tensor([[0.5, -0.5]], requires_grad=True), flow.tensor([0.0], requires_grad=True)
    x, y = flow.tensor([[1.0, 2.0], [3.0, 4.0]]), flow.tensor([[1.0], [2.0]])
    optimizer = optim.SGD([w, b], lr=0.1, momentum=0.9)
    losses, weights = [], []
    for _ in range(3):
        loss = ((x @ w.T + b - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        weights.append([*w.tolist()[0], b.item()])
    np.testing.assert_allclose(losses, [4.25, 19.7, 14.0981], rtol=1e-5)
    np.testing.assert_allclose(weights, [[1.4, 0.8, 0.4], [0.23, -0.83, -0.06], [0.833, 0.077, 0.244]],
                               atol=1e-6)
    np.testing.assert_allclose(optimizer.state[w]["momentum_buf"].numpy(), [[-6.03, -9.07]], rtol=1e-5)
    np.testing.assert_allclose(optimizer.state[b]["momentum_buf"].numpy(), [-3.04], rtol=1e-5)


# --- steps
# -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cls", ALL)
def test_a_parameter_without_gradient_stays_and_the_step_counts(cls):
    w, other = parameter(3), parameter(3, seed=1)
    optimizer = cls([w, other], lr=0.1)
    w.grad = flow.tensor(np.ones(3))
    before = other.numpy().copy()
    optimizer.step()
    optimizer.step()
    np.testing.assert_array_equal(other.numpy(), before)
    state = optimizer.state_dict()["state"]
    assert state["step"] == 2 and state[1] == {} and other not in optimizer.state


def test_a_closure_runs_with_gradients_and_its_loss_is_returned():
    w = parameter(3)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    before = (w.numpy() ** 2).sum()
    with flow.no_grad():
        assert optimizer.step(closure).item() == pytest.approx(before)
    assert (w.numpy() ** 2).sum() < before


def test_backward_detects_a_step():
    """The gradient of x * w needs the old w, which a step overwrites: backward raises instead of returning a
    wrong value.
    """
    w = parameter(3)
    y = (w * w).sum()
    w.grad = flow.tensor(np.ones(3))
    optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="in-place|in place|modified|version"):
        y.backward()
    assert w.is_leaf and w.requires_grad


def test_zero_grad():
    w = parameter(3)
    w.grad = g = flow.tensor(np.ones(3))
    optimizer = optim.SGD([w], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == g.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert w.grad is None


@pytest.mark.parametrize("cls", ALL)
def test_strided_parameters_and_gradients(cls):
    a = np.random.default_rng(0).standard_normal((4, 6))
    plain, turned = flow.tensor(a, requires_grad=True), flow.from_numpy(np.array(a, order="F"))
    turned.requires_grad = True
    for p in (plain, turned):
        optimizer = cls([p], lr=0.1)
        for _ in range(3):
            p.grad = flow.tensor(np.arange(24.0).reshape(6, 4)).T if p is turned else \
                flow.tensor(np.ascontiguousarray(np.arange(24.0).reshape(6, 4).T))
            optimizer.step()
    np.testing.assert_allclose(turned.numpy(), plain.numpy(), rtol=1e-12)


def test_many_parameters_are_updated_in_one_call():
    calls = []
    params = [parameter(2, seed=i) for i in range(30)]
    optimizer = optim.Adam(params, lr=0.1)
    for p in params:
        p.grad = flow.tensor(np.ones(2))

    class Watch:
        def run(self, op, inputs, attrs):
            from flowedu.core.ops.call import call_below
            calls.append(op.name)
            return call_below(op, inputs, attrs)

    from flowedu.core.ops.call import interpreter
    optimizer.step()                                # creates the states
    with interpreter(Watch()):
        optimizer.step()
    assert calls == ["adam_step"]


def test_clip_grad():
    w, v = parameter(3), parameter(3)
    optimizer = optim.SGD([{"params": [w], "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0},
                           {"params": [v]}], lr=0.1)
    w.grad, v.grad = flow.tensor(np.full(3, 10.0)), flow.tensor(np.full(3, 10.0))
    with pytest.warns(UserWarning, match="clip_grad_max_norm"):
        optimizer.clip_grad()
    assert np.linalg.norm(w.grad.numpy()) == pytest.approx(1, rel=1e-5) and v.grad.tolist() == [10, 10, 10]
    assert [g["_enable_clip_grad"] for g in optimizer.state_dict()["param_groups"]] == [True, False]


# --- groups
# ----------------------------------------------------------------------------------------------------------

def test_groups_have_separate_options():
    a, b, c = parameter(2), parameter(2, seed=1), parameter(2, seed=2)
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": iter([b]), "momentum": 0.5, "note": "x"}],
                          lr=0.1)
    optimizer.add_param_group({"params": c, "weight_decay": 0.5})
    assert [g["lr"] for g in optimizer.param_groups] == [1.0, 0.1, 0.1]
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0.5, 0]
    assert optimizer.param_groups[1]["note"] == "x" and optimizer.param_groups[1]["params"] == [b]
    start = [p.numpy().copy() for p in (a, b, c)]
    for p in (a, b, c):
        p.grad = flow.tensor(np.ones(2))
    optimizer.step()
    np.testing.assert_allclose(a.numpy(), start[0] - 1)
    np.testing.assert_allclose(b.numpy(), start[1] - 0.1)
    np.testing.assert_allclose(c.numpy(), start[2] - 0.1 * (1 + 0.5 * start[2]))
    assert repr(optimizer.param_groups[0]).startswith("{'lr': 1.0")
    assert "Parameter Group 2" in repr(optimizer) and "weight_decay: 0.5" in repr(optimizer)


def test_options_may_change_between_steps():
    w = parameter(3)
    optimizer = optim.Adam([w], lr=0.1)
    for option in ({}, {"lr": 0.2}, {"amsgrad": True}, {"betas": (0.5, 0.5)}):
        optimizer.param_groups[0].update(option)
        w.grad = flow.tensor(np.ones(3))
        optimizer.step()
    assert set(optimizer.state[w]) == {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
    optimizer.param_groups[0]["lr"] = -1
    optimizer.param_groups[0]["eps"] = 1e-3
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optimizer.step()


# --- state
# -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cls", ALL)
def test_a_loaded_state_continues_unchanged(cls):
    def stepped(optimizer, params, steps):
        for i in range(steps):
            for k, p in enumerate(params):
                p.grad = flow.tensor(np.random.default_rng(100 * i + k).standard_normal(p.shape))
            optimizer.step()

    params = [parameter(3, seed=i) for i in range(3)]
    one = cls([{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1)
    stepped(one, params, 3)
    copies = [flow.tensor(p.numpy().copy(), requires_grad=True) for p in params]
    two = cls([{"params": copies[:1]}, {"params": copies[1:]}], lr=7.0)
    state = one.state_dict()
    two.load_state_dict(state)
    assert [g["lr"] for g in two.param_groups] == [0.1, 0.3]
    stepped(one, params, 2)
    stepped(two, copies, 2)
    for a, b in zip(params, copies):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert state["param_groups"][1]["params"] == [1, 2] and state["param_groups"][1]["_options"]["lr"] == 0.3
    keys = {"SGD": set(), "RMSprop": {"square_avg"}, "Adagrad": {"sum"},
            "Adadelta": {"square_avgs", "acc_deltas"}}
    assert set(state["state"][0]) == keys.get(cls.__name__, {"exp_avg", "exp_avg_sq"})


def test_incompatible_states():
    a, b = parameter(2), parameter(2)
    adam, sgd = optim.Adam([a, b]), optim.SGD([a, b], momentum=0.9)
    a.grad = flow.tensor(np.ones(2))
    adam.step()
    for optimizer, state, words in (
            (sgd, adam.state_dict(), "another optimizer"),
            (optim.Adam([a]), adam.state_dict(), "doesn't match the size"),
            (optim.Adam([{"params": [a]}, {"params": [b]}]), adam.state_dict(),
             "different number of parameter groups"),
            (optim.Adam([parameter(3), b]), adam.state_dict(), "another shape")):
        before = repr(optimizer)
        with pytest.raises(ValueError, match=words) as e:
            optimizer.load_state_dict(state)
        assert isinstance(e.value, FlowError) and "fix:" in str(e.value) and repr(optimizer) == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_continues_independently(copied):
    def step(w, optimizer):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        return w.tolist()

    w = parameter(3)
    optimizer = optim.Adam([w], lr=0.1)
    step(w, optimizer)
    v, other = copied((w, optimizer))
    assert v is not w and other.param_groups[0]["params"][0] is v
    want = [step(w, optimizer) for _ in range(2)]
    assert [step(v, other) for _ in range(2)] == want
    assert other.state_dict()["state"]["step"] == 3


# --- errors
# ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda w: optim.SGD(w, lr=0.1), TypeError, "should be an iterable of Tensors or dicts"),
    (lambda w: optim.SGD(0.1, [w]), TypeError, "parameters first, then the learning rate"),
    (lambda w: optim.SGD({"params": [w]}), TypeError, r"\[{...}\]"),
    (lambda w: optim.SGD([("w", w)]), TypeError, "not named_parameters"),
    (lambda w: optim.SGD([w, {"params": [w]}]), TypeError, "item 1 is dict"),
    (lambda w: optim.SGD([{"params": [w]}, w]), TypeError, "do not mix"),
    (lambda w: optim.SGD([w * 2]), (ValueError, AssertionError), "non-leaf"),
    (lambda w: optim.SGD([w, w]), ValueError, "more than one"),
    (lambda w: optim.SGD([{"params": [w]}, {"params": [w]}]), ValueError, "more than one"),
    (lambda w: optim.SGD([w], lr=-1), (ValueError, AssertionError), "Invalid learning rate: -1"),
    (lambda w: optim.SGD([w], momentum=-1), ValueError, "Invalid momentum"),
    (lambda w: optim.SGD([w], momentum=0.5, dampening=0.1, nesterov=True), ValueError, "Nesterov"),
    (lambda w: optim.SGD([w], weight_decay=-1), ValueError, "weight_decay"),
    (lambda w: optim.Adam([w], betas=(0.9, 1.0)), ValueError, "beta parameter at index 1: 1.0"),
    (lambda w: optim.AdamW([w], eps=-1), ValueError, "epsilon"),
    (lambda w: optim.LAMB([w], amsgrad=True), NotImplementedError, "AMSGrad"),
    (lambda w: optim.RMSprop([w], momentum=0.9), ValueError, "momentum"),
    (lambda w: optim.Adagrad([w], lr_decay=-1), ValueError, "lr_decay"),
    (lambda w: optim.Adadelta([w], rho=1.5), ValueError, "rho"),
    (lambda w: optim.SGD([{"params": [w], "clip_grad_max_norm": 1.0}]), ValueError, "clip_grad_norm_type"),
    (lambda w: optim.SGD([w], lr=0.1).add_param_group([w]), TypeError, "'params'"),
])
def test_errors_have_a_fix(call, error, words):
    for kind in error if isinstance(error, tuple) else (error,):
        with pytest.raises(kind, match=words) as e:
            call(parameter(2))
    assert isinstance(e.value, FlowError) and "fix:" in str(e.value) and "expected:" in str(e.value)


def test_a_gradient_of_another_shape():
    w, v = parameter(3), parameter(2)
    v.grad = flow.tensor(np.ones(2))
    optimizer = optim.SGD([w, v], lr=0.1)
    optimizer.step()
    with pytest.raises((TypeError, RuntimeError, ValueError), match="(?s)dtype|type"):
        w.grad = flow.tensor(np.ones(3, np.float16))
        optim.SGD([w], lr=0.1).step()


def test_a_custom_optimizer_starts_with_empty_state():
    p = flow.nn.Parameter(flow.ones(2))
    opt = optim.Optimizer([p], {"lr": 0.1})
    assert opt.state[p] == {} and len(opt.state[p]) == 0
    opt.state[p]["step"] = 1
    assert opt.state_dict()["state"][0] == {"step": 1}


def test_nesterov_without_momentum_is_plain():
    """OneFlow accepts this combination."""
    ps = [flow.nn.Parameter(flow.ones(2)) for _ in range(2)]
    for p, nesterov in zip(ps, (False, True)):
        opt = optim.SGD([p], lr=0.1, nesterov=nesterov)
        (p * p).sum().backward()
        opt.step()
    assert ps[0].tolist() == ps[1].tolist() == flow.tensor([0.8, 0.8]).tolist()


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.LAMB])
def test_the_number_of_parameters_is_unlimited(make):
    """With more axes than letters in all scripts, each parameter is updated as if it were alone."""
    many = [flow.nn.Parameter(flow.tensor([[1.0 + i % 5]] * (1 + i % 3))) for i in range(2000)]
    few = [flow.nn.Parameter(p.detach().clone()) for p in many[:30]]
    for parameters in (many, few):
        rule = make(parameters, lr=0.1)
        for _ in range(2):
            for p in parameters:
                p.grad = p.detach() * 2 + 1
            rule.step()
    for i, p in enumerate(many):
        np.testing.assert_allclose(p.detach().numpy(), few[i % 30].detach().numpy(), rtol=1e-6)
