"""flow.autograd: backward, grad, hooks, modes, graph nodes, anomaly mode, gradcheck, functional."""
import gc
import threading
import weakref

import numpy as np
import pytest

import flowedu as flow
from common import leaf
from flowedu.errors import ArgumentError, CallError, FlowError, GradientError, ShapeError, UnsupportedError

F64 = flow.float64


def to_lists(*tensors):
    return [None if t is None else t.tolist() for t in tensors]


# ---- backward and grad

def test_errors_of_backward():
    w = leaf(1.0, 2.0)
    with pytest.raises(GradientError, match="Grad can be implicitly created only for scalar outputs"):
        (w * 2).backward()
    with pytest.raises(GradientError, match="element 0 of tensors does not require grad and does not have a "
                       "grad_fn"):
        flow.tensor(1.0).backward()
    with pytest.raises(GradientError, match="element 1 of tensors does not require grad"):
        flow.autograd.backward([w.sum(), flow.tensor(1.0)])
    with pytest.raises(ShapeError, match=r"out_grad's shape must be same as output's \(\(3,\) vs \(2,\)\)"):
        (w * 2).backward(flow.ones(3))
    with pytest.raises(CallError, match="the gradient is not a tensor"):
        (w * 2).backward([1.0, 1.0])
    with pytest.raises(CallError, match="got 1 tensors and 2 gradients"):
        flow.autograd.backward([w * 2], [flow.ones(2), flow.ones(2)])
    assert w.grad is None


def test_second_backward_names_the_released_node():
    w = leaf(1.0, 2.0)
    y = w.exp()
    total = y.sum()
    total.backward()
    with pytest.raises(GradientError, match=r"This FunctionNode|node with name `exp_backward` has been "
                       r"released") as e:
        y.sum().backward()
    assert "retain_graph=True" in str(e.value) and "second time" in str(e.value)
    z = w * 2                                        # nothing is saved, so nothing is released
    z.sum().backward()
    z.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.exp([1, 2]) + 4)
    q = w.exp()
    q.sum().backward(retain_graph=True)
    q.sum().backward()


def test_backward_of_several_and_into_chosen_inputs():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    flow.autograd.backward([a * b, a.sum()], [flow.tensor([1.0, 10.0], dtype=F64), None])
    assert to_lists(a.grad, b.grad) == [[4, 41], [1, 20]]
    a.grad = b.grad = None
    (a * b).sum().backward(inputs=[a])
    assert to_lists(a.grad, b.grad) == [[3, 4], None]
    (a * b).sum().backward(inputs=b)
    assert to_lists(a.grad, b.grad) == [[3, 4], [1, 2]]
    with pytest.raises(CallError, match="inputs is empty"):
        (a * b).sum().backward(inputs=[])


def test_grad():
    a, b, c = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0)
    y = (a * b).sum()
    assert to_lists(*flow.autograd.grad(y, [a, b], retain_graph=True)) == [[3, 4], [1, 2]]
    assert to_lists(*flow.grad(y, a, retain_graph=True)) == [[3, 4]] and a.grad is None
    with pytest.raises(GradientError, match="appears to not have been used in the graph"):
        flow.autograd.grad(y, [a, c], retain_graph=True)
    assert to_lists(*flow.autograd.grad(y, [c, a], retain_graph=True, allow_unused=True)) == [None, [3, 4]]
    assert (to_lists(*flow.autograd.grad(y, [c, a], retain_graph=True, materialize_grads=True))
            == [[0], [3, 4]])
    with pytest.raises(GradientError, match="does not require grad"):
        flow.autograd.grad(y, flow.tensor([1.0]))
    with pytest.raises(UnsupportedError):
        flow.autograd.grad(y, a, is_grads_batched=True)
    assert to_lists(*flow.autograd.grad([a * b, a], [a], [flow.ones(2, dtype=F64)] * 2)) == [[4, 5]]


def test_grad_of_inner_values_and_of_the_output():
    a = leaf(1.0, 2.0)
    h = a * a
    y = (h * 3).sum()
    assert to_lists(*flow.autograd.grad(y, [h, a, y], retain_graph=True)) == [[3, 3], [6, 12], 1]
    # only necessary nodes are visited: nodes below h keep their saved tensors
    flow.autograd.grad(y, h, retain_graph=False)
    (h * 1).sum().backward()
    assert a.grad.tolist() == [2, 4]


def test_higher_derivatives():
    x = leaf(2.0)
    y = x ** 4
    d = [y]
    for _ in range(4):
        d += flow.autograd.grad(d[-1].sum(), x, create_graph=True)
    np.testing.assert_allclose([t.item() for t in d], [16, 32, 48, 48, 24])
    x = leaf(0.5, 2.0)
    (x.exp() * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    second, = flow.autograd.grad(x.grad.sum(), x)
    np.testing.assert_allclose(second.numpy(), np.exp(x.detach().numpy()) * (x.detach().numpy() + 2))


def test_second_derivatives_through_values_that_were_rebound_in_place():
    x = leaf(2.0)
    a = x * 1
    y = a * a                                        # saves a, which the next line rebinds to another value
    with pytest.raises(GradientError, match="modified by an inplace"):
        b = a
        b.mul_(3)
        flow.autograd.grad(y.sum(), x)
    a = x * 1
    y = a * a
    a.detach_()                                      # the values stay, with the history saved for them
    g, = flow.autograd.grad(y.sum(), x, create_graph=True)
    assert flow.autograd.grad(g.sum(), x)[0].tolist() == [2]


def test_accumulation_keeps_the_gradient_object_and_shares_no_memory():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).sum().backward()
    assert a.grad is not b.grad and a.grad.data_ptr() != b.grad.data_ptr()
    held = a.grad
    (a * 3).sum().backward()
    assert a.grad is held and held.tolist() == [4] and b.grad.tolist() == [1]
    seed = flow.ones(1, dtype=F64)
    c = leaf(1.0)
    c.backward(seed)
    c.backward(seed)
    assert c.grad.tolist() == [2] and seed.tolist() == [1]
    (a * 1).backward(seed)
    a.grad.zero_()
    assert seed.tolist() == [1]


def test_gradients_of_leaves_do_not_require_gradients():
    a = leaf(1.0)
    (a * a).sum().backward()
    assert not a.grad.requires_grad and a.grad.grad_fn is None
    a.grad = None
    assert a.grad is None
    with pytest.raises(TypeError):
        a.grad = 3.0


def test_requires_grad_flags():
    a = flow.tensor([1.0])
    assert a.requires_grad_() is a and a.requires_grad and a.is_leaf
    with pytest.raises(GradientError, match="only change requires_grad flags of leaf"):
        (a * 2).requires_grad = False
    with pytest.raises(GradientError, match="only Tensors of floating point can require gradients"):
        flow.tensor([1]).requires_grad_()
    assert not a.detach().requires_grad and a.detach().data_ptr() == a.data_ptr()
    assert not a.requires_grad_(False).requires_grad


# ---- hooks

def test_hooks_run_in_order_and_may_change_the_gradient():
    a = leaf(1.0, 2.0)
    h = a * 2
    seen = []
    first = h.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    h.register_hook(lambda g: seen.append(g.tolist()))
    a.register_hook(lambda g: seen.append(g.tolist()) or g + 1)
    h.sum().backward(retain_graph=True)
    assert seen == [[1, 1], [10, 10], [20, 20]] and a.grad.tolist() == [21, 21]
    first.remove()
    first.remove()
    seen.clear()
    h.sum().backward()
    assert seen == [[1, 1], [2, 2]] and a.grad.tolist() == [24, 24]


def test_hook_of_a_leaf_sees_the_sum_of_all_paths_once():
    a, seen = leaf(1.0), []
    with a.register_hook(lambda g: seen.append(g.item())):
        (a * 2 + a * 3 + a.exp() * 0 + a).sum().backward()
    (a * 2).sum().backward()
    assert seen == [6] and a.grad.item() == 8


def test_hooks_run_in_grad_and_refuse_invalid_arguments():
    a = leaf(1.0)
    h = a * 2
    h.register_hook(lambda g: g * 5)
    assert flow.autograd.grad((h * 1).sum(), [h, a], retain_graph=True)[0].tolist() == [5]
    h.register_hook(lambda g: "no")
    with pytest.raises(GradientError, match="returned something else than a tensor"):
        h.sum().backward()
    with pytest.raises(GradientError, match="doesn't require gradient"):
        flow.tensor([1.0]).register_hook(print)
    with pytest.raises(CallError, match="not a function"):
        a.register_hook(3)
    b = leaf(1.0)
    b.register_hook(lambda g: flow.ones(2))
    with pytest.raises(GradientError, match="changed the shape"):
        b.sum().backward()


def test_retain_grad():
    a = leaf(1.0, 2.0)
    h = a * 2
    h.retain_grad()
    a.retain_grad()                                  # no effect on a leaf
    (h * h).sum().backward()
    assert h.grad.tolist() == [4, 8] and h.retains_grad and not a.retains_grad
    k = a * 1
    k.retain_grad()
    k.mul_(3)                                        # the current value of k
    (k * 2).sum().backward()
    assert k.grad.tolist() == [2, 2]
    with pytest.raises(GradientError, match="requires_grad=False"):
        flow.tensor([1.0]).retain_grad()


def test_hooks_after_accumulation_may_free_the_gradient():
    a, b, order = leaf(1.0), leaf(2.0), []

    def step(p):
        order.append((p is a, p.grad.item()))
        p.grad = None

    handles = [p.register_post_accumulate_grad_hook(step) for p in (a, b)]
    (a * b + a).sum().backward()
    assert sorted(order) == [(False, 1), (True, 3)] and a.grad is None and b.grad is None
    handles[0].remove()
    (a * 2).sum().backward()
    assert a.grad.item() == 2
    with pytest.raises(GradientError, match="non-leaf"):
        (a * 2).register_post_accumulate_grad_hook(step)


def test_grad_fn_has_the_names_and_links_of_the_graph():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = (a * b).sum()
    assert y.grad_fn.name() == "reduce_sum_backward" and repr(y.grad_fn) == "<reduce_sum_backward>"
    (mul, slot), = y.grad_fn.next_functions
    assert mul.name() == "broadcast_mul_backward" and slot == 0
    (one, _), (two, _) = mul.next_functions
    assert (one.name() == "accumulate_grad" and one.variable is a and two.variable is b
            and one == mul.next_functions[0][0])
    assert (a * 2).grad_fn.name() == "scalar_mul_backward" and (a * 2).grad_fn.next_functions[1] == (None, 0)
    assert a.grad_fn is None and a.is_leaf
    names = [t.grad_fn.name() for t in (a + b, a - 1, a.exp(), a.reshape(2, 1), a[0], a.clone(), a.max())]
    assert names == ["broadcast_add_backward", "scalar_sub_backward", "exp_backward",
                     "view::reshape_backward",
                     "view::reshape_backward", "copy_backward", "reduce_max_backward"]
    assert "grad_fn=<broadcast_add_backward>" in repr(a + b) and "requires_grad=True" in repr(a)


def test_node_hooks():
    a, seen = leaf(2.0), []
    y = a * a
    y.grad_fn.register_prehook(lambda douts: (douts[0] * 2,))
    y.grad_fn.register_hook(lambda grads, douts: seen.append((grads[0].item(), douts[0].item())))
    y.sum().backward()
    assert a.grad.item() == 8 and seen == [(4, 2)]


# ---- modes

def test_modes_nest_as_managers_and_decorators():
    a = leaf(1.0)

    @flow.no_grad()
    def frozen(x):
        with flow.enable_grad():
            assert (x * 2).requires_grad
        return x * 2

    @flow.no_grad
    def bare(x):
        return x * 2

    @flow.enable_grad()
    def thawed(x):
        return x * 2

    @flow.no_grad()
    def steps():
        for _ in range(2):
            yield flow.is_grad_enabled()

    assert not frozen(a).requires_grad and not bare(a).requires_grad and frozen.__name__ == "frozen"
    for enabled in steps():
        assert not enabled and flow.is_grad_enabled()
    with flow.no_grad():
        assert thawed(a).requires_grad and not (a * 2).requires_grad
        with flow.set_grad_enabled(True):
            assert (a * 2).requires_grad
        assert not flow.is_grad_enabled()
    flow.set_grad_enabled(False)
    try:
        assert not (a * 2).requires_grad
    finally:
        flow.set_grad_enabled(True)
    with pytest.raises(ValueError), flow.no_grad():
        raise ValueError
    assert flow.is_grad_enabled()

    @flow.set_grad_enabled(False)
    def off(x):
        return x * 2

    assert flow.is_grad_enabled() and not off(a).requires_grad


def test_inference_mode():
    a = leaf(1.0)
    with flow.inference_mode():
        y = a * 2
        assert flow.is_inference_mode_enabled() and not flow.is_grad_enabled()
        with flow.inference_mode(False):
            assert (a * 2).requires_grad and not (a * 2).is_inference()
    assert (y.is_inference() and not y.requires_grad and not (a * 2).is_inference()
            and not flow.is_inference_mode_enabled())


def test_modes_are_thread_local():
    found = []
    with flow.no_grad():
        t = threading.Thread(target=lambda: found.append(flow.is_grad_enabled()))
        t.start()
        t.join()
        assert not flow.is_grad_enabled()
    assert found == [True]


# ---- saved tensors

def test_saved_tensors_hooks():
    w = leaf(1.0, 2.0)
    log = []
    with flow.autograd.graph.saved_tensors_hooks(lambda t: log.append("pack") or t.numpy().copy(),
                                                 lambda a: log.append("unpack") or flow.from_numpy(a)):
        y = (w * w).exp().sum()
    assert log == ["pack"] * 3
    y.backward()
    x = w.detach().numpy()
    np.testing.assert_allclose(w.grad.numpy(), 2 * x * np.exp(x * x))
    assert log.count("unpack") == 3
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = (w * w).sum()
    with pytest.raises(GradientError, match="unpack_hook returned something else"):
        y.backward()


def test_only_tensors_needed_by_backward_are_saved():
    a, b = flow.tensor(np.ones(1000)), leaf(*np.ones(1000))
    live = flow.memory_stats()["live"]
    h = b * 2
    y = h * a                                        # the gradient of b needs a, no gradient needs h
    del h
    assert flow.memory_stats()["live"] - live < 2.5 * 8000
    y.sum().backward()
    assert b.grad.sum().item() == 2000


# ---- debugging

def test_anomaly_mode_names_the_forward_line():
    a = leaf(0.0)
    with flow.autograd.set_detect_anomaly(True):
        assert flow.autograd.is_anomaly_enabled()
        y = a.log() * 0                              # here
        with pytest.raises(GradientError, match="returned nan values in its 0th output") as e:
            y.sum().backward()
        assert "# here" in str(e.value) and "test_autograd_api.py" in str(e.value)
        b = a * 1
        z = b * b                                    # there
        b.add_(1)
        with pytest.raises(GradientError) as e:
            z.sum().backward()
        assert "# there" in str(e.value) + "".join(e.value.__notes__)
    assert not flow.autograd.is_anomaly_enabled()
    with pytest.warns(UserWarning, match="debugging"), flow.autograd.detect_anomaly(check_nan=False):
        (leaf(0.0).log() * 0).sum().backward()


def test_gradcheck_accepts_right_and_refuses_wrong_gradients():
    class Wrong(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * 3

    x, w = leaf(0.5, -1.0, 2.0), leaf(1.0, 2.0, 3.0)
    check, check2 = flow.autograd.gradcheck, flow.autograd.gradgradcheck
    assert check(lambda x, w: (x * w).tanh(), (x, w)) and check2(lambda x, w: (x * w).tanh(), (x, w))
    assert check(lambda x: (x.sum(), x * 2), x)
    with pytest.raises(FlowError, match="Jacobian mismatch for output 0 with respect to input 0") as e:
        check(Wrong.apply, x)
    assert "numerical" in str(e.value) and "analytical" in str(e.value)
    assert check(Wrong.apply, x, raise_exception=False) is False
    with pytest.raises(ArgumentError, match="at least one input"):
        check(lambda x: x, flow.tensor([1.0]))


def test_functional():
    A = flow.autograd.functional
    m = np.arange(6.0).reshape(2, 3)
    x = leaf(1.0, 2.0, 3.0)

    def f(x):
        return flow.tensor(m) @ (x * x)

    np.testing.assert_allclose(A.jacobian(f, x).numpy(), m * 2 * np.array([1, 2, 3]))

    def g(x, y):
        return ((x * x).sum() * y).sum()

    h = A.hessian(g, (x, leaf(2.0)))
    np.testing.assert_allclose(h[0][0].numpy(), 4 * np.eye(3))
    np.testing.assert_allclose(h[0][1].numpy()[:, 0], [2, 4, 6])
    assert not np.any(h[1][1].numpy())
    v = flow.tensor([1.0, -1.0], dtype=F64)
    y, got = A.vjp(f, x, v)
    np.testing.assert_allclose(got.numpy(), v.numpy() @ (m * 2 * np.array([1, 2, 3])))
    u = flow.tensor([1.0, 0.0, -1.0], dtype=F64)
    y, got = A.jvp(f, x, u)
    np.testing.assert_allclose(got.numpy(), (m * 2 * np.array([1, 2, 3])) @ u.numpy())
    j = A.jacobian(lambda x: x ** 3, x, create_graph=True)
    assert flow.autograd.grad(j.sum(), x)[0].tolist() == [6, 12, 18]


def test_the_namespace():
    assert flow.autograd.grad is flow.grad and "Function" in dir(flow.autograd)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        flow.autograd.nonsense  # noqa: B018
    from flowedu.autograd import Function, no_grad  # noqa: F401


def test_tensors_and_graphs_are_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        a = leaf(1.0, 2.0)
        h = (a * a).exp()
        h.register_hook(lambda g: g)
        h.retain_grad()
        h.sum().backward()
        dead = [weakref.ref(t) for t in (a, h)]
        del a, h
        assert [d() for d in dead] == [None, None]
    finally:
        gc.enable()
