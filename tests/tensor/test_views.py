"""Views and in-place writes: random programs have the values of NumPy's views, numerical slopes as gradients,
and PyTorch's values, flags, and gradients where it is installed.
"""
import copy
import gc

import numpy as np
import pytest
from hypothesis import assume, given, settings

import flowedu as flow
from flowedu.errors import GradientError
from tensor.numpy_programs import Array, finite_differences
from tensor.programs import WRITES, act, draw_program_inputs, finish, ours, programs, start


@given(programs)
@settings(max_examples=2 * settings.default.max_examples)
def test_random_programs_agree_with_numpy(program):
    """Compare values after every step. Without detach and no_grad, which cut histories, gradients equal the
    numerical slopes.
    """
    steps, seed = program
    mine, arrays, done = start(flow, seed, ours), [Array(a) for a in draw_program_inputs(seed)], []
    for one in steps:
        before, x = len(mine), mine[one[2] % len(mine)]
        if one[:2] in (("write", "fill_"), ("write", "zero_")) and x.requires_grad and x.is_leaf:
            one = ("frozen", *one[1:])  # initial values of a leaf are written without history
        try:
            act(flow, mine, one)
        except GradientError as e:                       # leaves must not be written
            assert "leaf" in str(e) or "no_grad" in str(e) or "modified" in str(e), e
            if "leaf" not in str(e):
                return
            continue
        if one[0] == "frozen":                           # NumPy has no no_grad
            act(flow, arrays, ("write", *one[1:]))
        else:
            act(flow, arrays, one)
        done.append(one)
        assert len(mine) == len(arrays) and len(mine) - before <= 1
        for a, b in zip(mine, arrays):
            assert tuple(a.shape) == b.shape
            np.testing.assert_allclose(a.detach().numpy(), b.a, rtol=1e-9, atol=1e-12, err_msg=str(one))
    assume(all(np.abs(b.a).max(initial=0) < 1e3 for b in arrays))
    if any(one[0] == "frozen" or one[1] == "detach" for one in done):
        return
    counted = [k for k, v in enumerate(mine) if v.requires_grad]

    def run(values):
        for one in done:
            act(flow, values, one)
        return sum((values[k].a * (0.3 + 0.1 * k)).sum() for k in counted)

    try:
        gradients = finish(flow, mine)
    except GradientError as e:                           # an error is acceptable, a wrong gradient is not
        assert "modified by an inplace operation" in str(e)
        return
    for got, want in zip(gradients, finite_differences(run, draw_program_inputs(seed), 2)):
        np.testing.assert_allclose(np.zeros(want.shape) if got is None else got, want, rtol=1e-4, atol=1e-4)


@given(programs)
@settings(max_examples=5 * settings.default.max_examples)
def test_random_programs_agree_with_pytorch(program):
    torch = pytest.importorskip("torch")
    steps, seed = program
    mine, theirs = start(flow, seed, ours), start(torch, seed, torch.tensor)
    for one in steps:
        k = one[2] % len(mine)
        if one[1] == "flat" and mine[k].is_contiguous() != theirs[k].is_contiguous():
            continue  # PyTorch keeps the strides of inputs, flowedu returns row-major results
        try:
            act(torch, theirs, one)
        except RuntimeError as error:
            if "leaf" in str(error) and one[1] in ("fill_", "zero_"):
                return  # flowedu allows setting initial values of a parameter, like OneFlow (differences.md)
            with pytest.raises(RuntimeError):
                act(flow, mine, one)
            return
        act(flow, mine, one)
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12,
                                       err_msg=str(one))
            assert (a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf
                    and a._is_view() == b._is_view()), one
            assert (a._base is None) == (b._base is None)
    try:
        want = finish(torch, theirs)
    except RuntimeError as e:
        # flowedu may have kept a copy, and then returns the right gradient
        assert "inplace operation" in str(e)
        return
    got = finish(flow, mine)
    assert (got is None) == (want is None)
    for a, b in zip(got or (), want or ()):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", sorted(WRITES.keys() - {"itself"}))
@pytest.mark.parametrize("on", ["tensor", "view", "base of a view", "row of a transpose"])
def test_every_write_has_the_gradient_of_its_out_of_place_form(name, on):
    def run(w, u, v_of):
        a = w * 2
        v = v_of(a)
        other = a[:2] if on == "base of a view" else None
        y = u if tuple(v.shape) == (3, 4) else u[1:] if on == "view" else u[:, 1]
        if name == "set_part":
            y = y[1:]
        WRITES[name](v, y)
        total = (a * a).sum() + (v * 3).sum()
        return a, total if other is None else total + (other * other * other).sum()

    part = {"tensor": lambda a: a, "view": lambda a: a[1:], "base of a view": lambda a: a,
            "row of a transpose": lambda a: a.transpose(0, 1)[2]}[on]
    rng = np.random.default_rng(3)
    start = [rng.uniform(0.1, 1, (3, 4)) for _ in range(2)]
    w, u = (flow.tensor(a, requires_grad=True) for a in start)
    a, total = run(w, u, part)
    total.backward()
    b, _ = run(*map(Array, start), part)
    np.testing.assert_allclose(a.detach().numpy(), b.a, rtol=1e-12)
    for leaf, want in zip((w, u), finite_differences(lambda leaves: run(*leaves, part)[1].item(), start, 2)):
        got = np.zeros(want.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_a_base_is_never_a_view_and_versions_are_shared():
    x = flow.tensor(np.zeros((2, 3)))
    v = x[0][1:]
    assert v._base is x and x._base is None and x.T._base is x and x.detach()._base is None
    v.add_(1)
    assert x._version == v._version == x.detach()._version == 1
    assert x.numpy()[0, 1] == 1
    flow.from_numpy(x.numpy())[0, 0] = 7
    assert x[0, 0].item() == 7


def test_history_of_views_follows_writes_into_the_base():
    w = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = flow.tensor([4.0, 5.0, 6.0])
    v, rest = x[:2], x[1:]
    assert not v.requires_grad and v.is_leaf
    x.mul_(w)
    assert v.requires_grad and not v.is_leaf and v.grad_fn is not None
    (v * v).sum().backward(retain_graph=True)
    np.testing.assert_allclose(w.grad.numpy(), [2 * 16 * 1, 2 * 25 * 2, 0])
    rest.zero_()
    w.grad = None
    v.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [4, 0, 0])


def test_views_made_without_recording():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    a = w * 2
    with flow.no_grad():
        v = a[:1]
        v.add_(1)
    assert a.tolist() == [3, 4]
    with pytest.raises(GradientError, match="created in no_grad mode"):
        v.add_(1)
    assert flow.tensor([1.0])[:1].add_(1).tolist() == [2]


@pytest.mark.parametrize("change, plain", [
    (lambda x: x.t_(), lambda x: x.transpose(0, 1)), (lambda x: x.transpose_(0, 1),
                                                      lambda x: x.transpose(0, 1)),
    (lambda x: x.swapaxes_(1, 0), lambda x: x.transpose(0, 1)), (lambda x: x.swapdims_(0, 1),
                                                                 lambda x: x.transpose(0, 1)),
    (lambda x: x.movedim_(0, 1), lambda x: x.transpose(0, 1)), (lambda x: x.moveaxis_(1, 0),
                                                                lambda x: x.transpose(0, 1)),
    (lambda x: x.unsqueeze_(0), lambda x: x.unsqueeze(0)), (lambda x: x.squeeze_(), lambda x: x),
    (lambda x: x.unsqueeze_(0).squeeze_(0), lambda x: x), (lambda x: x[0].unsqueeze_(1),
                                                           lambda x: x[0].unsqueeze(1))])
def test_changes_of_shape_in_place(change, plain):
    """The tensor becomes a view of itself: same memory, and the history continues."""
    start = np.arange(6.0).reshape(2, 3)

    def run(w, view):
        a = w * 2
        y = view(a)
        y.mul_(3)
        return a, y, (a * a).sum()

    w = flow.tensor(start, requires_grad=True)
    a, y, total = run(w, change)
    total.backward()
    b, z, _ = run(Array(start), plain)
    assert (tuple(y.shape) == z.shape
            and (a.data_ptr() == y.data_ptr()) == (b.a.ctypes.data == z.a.ctypes.data))
    assert all(p == q // 8 for p, q, n in zip(y.stride(), z.a.strides, z.shape) if n > 1)
    np.testing.assert_array_equal(y.detach().numpy(), z.a)
    want, = finite_differences(lambda leaves: run(*leaves, plain)[2].item(), [start], 1)
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-6, atol=1e-6)


def test_a_view_whose_base_changed_shape_raises():
    w = flow.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    a = w * 1
    v = a[0]
    a.t_()
    a.mul_(2)
    with pytest.raises(GradientError, match="changed in place"):
        v.sum().backward()


def test_deep_chains_of_views_are_followed_and_freed():
    x = flow.tensor(np.arange(200_000.0))
    for _ in range(100_000):
        x = x[1:]
    assert x.shape == (100_000,) and x[0].item() == 100_000
    x.add_(1)                                       # without gradient, no chain is followed
    w = flow.tensor(2.0, requires_grad=True)
    with pytest.raises(GradientError, match="too many view ops"):
        x.mul_(w)
    del x
    gc.collect()


def test_long_histories_are_freed_without_recursion():
    w = flow.tensor(1.0, requires_grad=True)
    y = w
    for _ in range(200_000):
        y = y + 1
    del y
    gc.collect()
    x = w * 1
    for _ in range(20_000):
        x.add_(1)
    x.backward()
    assert w.grad.item() == 1


def test_no_cycles_keep_memory():
    """Reference counts alone free the objects of a program with views and writes."""
    def work():
        w = flow.tensor(np.ones((50, 50)), requires_grad=True)
        a = w * 2
        v = a[3:]
        v.mul_(w[3:])
        a.mul_(0.5)
        a.relu_()
        (v * v).sum().backward()

    work()
    gc.collect()
    gc.disable()
    try:
        before = flow.memory_stats()["live"]
        for _ in range(20):
            work()
        assert flow.memory_stats()["live"] == before
    finally:
        gc.enable()


def test_copies_of_views_are_not_views():
    x = flow.tensor(np.arange(4.0))
    c = copy.deepcopy(x[1:])
    c.zero_()
    assert x.tolist() == [0, 1, 2, 3] and c._base is None
