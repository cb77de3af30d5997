"""nn.Module: registration and its errors, order, state_dict, hooks, conversion, copies, printing."""
import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.w = nn.Parameter(flow.ones(2))
        self.register_buffer("scale", flow.tensor([2.0]))
        self.register_buffer("hidden", flow.tensor([1.0]), persistent=False)
        self.fc2 = nn.Linear(4, 2, bias=False)
        self.note = flow.ones(1)  # a tensor that is not a parameter is an ordinary attribute

    def forward(self, x):
        return self.fc2(self.fc1(x).relu()) * self.scale


# ---- registration
def test_order_is_own_parameters_then_buffers_then_children():
    net = Net()
    assert list(net.state_dict()) == ["w", "scale", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert [n for n, _ in net.named_parameters()] == ["w", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert [n for n, _ in net.named_buffers()] == ["scale", "hidden"]
    assert [n for n, _ in net.named_modules()] == ["", "fc1", "fc2"]
    assert [n for n, _ in net.named_children()] == ["fc1", "fc2"]
    assert [n for n, _ in net.named_parameters("net", recurse=False)] == ["net.w"]
    assert len(list(net.parameters())) == 4
    assert len(list(net.modules())) == 3
    assert net.note is net.__dict__["note"]


def test_shared_parameters_and_modules_count_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net.add_module("again", net[0])
    net.tied = nn.Linear(2, 2)
    net.tied.weight = net[0].weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "tied.bias"]
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)] == [
        "0.weight", "0.bias", "again.weight", "again.bias", "tied.weight", "tied.bias"]
    assert [n for n, _ in net.named_modules()] == ["", "0", "1", "tied"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "again.weight", "again.bias", "tied.weight",
                                      "tied.bias"]


def test_assignment_moves_between_the_tables():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(flow.ones(1))
    assert "x" not in m.__dict__
    assert list(m._parameters) == ["x"]
    m.x = nn.ReLU()
    assert list(m._parameters) == []
    assert list(m._modules) == ["x"]
    m.x = None
    assert m.x is None
    del m.x
    assert not hasattr(m, "x")
    m.register_buffer("b", flow.ones(1))
    m.b = flow.zeros(2)
    assert m.b.shape == (2,)
    m.b = None
    assert list(m.state_dict()) == []


def broken_init():
    class Bad(nn.Module):
        def __init__(self, part):
            self.part = part
    return Bad


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda m: setattr(m, "w", flow.ones(2)), TypeError,
     "cannot assign 'flowedu.Tensor' as parameter 'w' (nn.Parameter or None expected)"),
    (lambda m: setattr(m, "fc1", 3), TypeError, "as child module 'fc1' (nn.Module or None expected)"),
    (lambda m: setattr(m, "scale", "x"), TypeError, "as buffer 'scale'"),
    (lambda m: broken_init()(nn.ReLU()), AttributeError,
     "cannot assign module before Module.__init__() call"),
    (lambda m: broken_init()(nn.Parameter(flow.ones(1))), AttributeError, "cannot assign parameters before "
                                                                          "Module.__init__()"),
    (lambda m: m.absent, AttributeError, "'Net' object has no attribute 'absent'"),
    (lambda m: nn.Module()(3), NotImplementedError, 'missing the required "forward" function'),
    (lambda m: m.register_parameter("a.b", None), KeyError, 'can\'t contain "."'),
    (lambda m: m.register_parameter("", None), KeyError, "can't be empty"),
    (lambda m: m.register_parameter("note", None), KeyError, "attribute 'note' already exists"),
    (lambda m: m.register_parameter("q", flow.ones(1)), TypeError, "nn.Parameter or None required"),
    (lambda m: m.register_buffer("q", 3), TypeError, "flowedu.Tensor or None required"),
    (lambda m: m.register_buffer("forward", flow.ones(1)), KeyError, "already exists"),
    (lambda m: m.add_module("q", 3), TypeError, "is not a Module subclass"),
    (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, 'can\'t contain "."'),
    (lambda m: m.get_submodule("fc1.deep"), AttributeError, "no submodule 'deep'"),
    (lambda m: m.get_parameter("fc1.nothing"), AttributeError, "no parameter 'nothing'"),
    (lambda m: m.get_buffer("fc1.weight"), AttributeError, "no buffer 'weight'"),
    (lambda m: m.train("yes"), TypeError, "not a bool"),
    (lambda m: m.register_forward_hook(3), TypeError, "not callable"),
    (lambda m: m.to(flow.int64), TypeError, "only accepts floating point"),
    (lambda m: nn.Parameter([1.0]), TypeError, "not a tensor"),
    (lambda m: nn.Parameter(flow.tensor([1])), RuntimeError, "floating point"),
])
def test_invalid_assignments_and_calls_are_refused(call, error, words):
    with pytest.raises(error) as caught:
        call(Net())
    assert words in str(caught.value)


def test_a_parameter_is_a_leaf_that_requires_a_gradient():
    t = flow.ones(2)
    p = nn.Parameter(t)
    assert isinstance(p, flow.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    t[0] = 5                                             # the same memory
    assert p.tolist() == [5, 1]
    assert not nn.Parameter(t, requires_grad=False).requires_grad
    assert not nn.Parameter(flow.tensor([1]), False).requires_grad
    assert repr(p).startswith("Parameter containing:\ntensor([5., 1.]")
    assert type(p * 2) is flow.Tensor
    p.mark = "kept"
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is nn.Parameter
        assert other.requires_grad
        assert other.mark == "kept"
        assert other.tolist() == [5, 1]
    with flow.no_grad():
        copy.deepcopy(p).fill_(0)
    assert p.tolist() == [5, 1]


# ---- state
def test_state_dict_holds_the_live_tensors():
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert state["fc1.weight"] is net.fc1.weight
    assert state["scale"] is net.scale
    assert set(state._metadata) == {"", "fc1", "fc2"}
    detached = net.state_dict(keep_vars=False)
    assert not detached["fc1.weight"].requires_grad
    with flow.no_grad():
        net.fc1.weight.fill_(7)
    assert float(detached["fc1.weight"][0, 0]) == 7
    assert list(net.state_dict(prefix="net."))[0] == "net.w"


def test_live_state_is_safe_to_load_keep_and_average():
    """Common uses of state_dict: load it back into its own model, copy it, average two of them."""
    net, other = Net(), Net()
    before = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    net.load_state_dict(net.state_dict())
    for k, v in net.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), before[k])
        assert v.requires_grad == (k != "scale")
    kept = copy.deepcopy(net.state_dict())
    with flow.no_grad():
        for p in net.parameters():
            p.zero_()
    np.testing.assert_array_equal(kept["fc1.weight"].numpy(), before["fc1.weight"])
    net.load_state_dict(kept)
    mean = {k: (a + b) / 2 for (k, a), b in zip(net.state_dict().items(), other.state_dict().values())}
    other.load_state_dict(mean)
    assert all(p.is_leaf and p.requires_grad for p in other.parameters())
    # an in-place moving average needs no_grad; the error prevents a silent mistake
    with pytest.raises(RuntimeError, match="leaf"):
        net.state_dict()["w"].mul_(0.9)


def test_load_state_dict_copies_in_place():
    net, other = Net(), Net()
    weight = net.fc1.weight
    assert repr(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert net.fc1.weight is weight
    np.testing.assert_array_equal(weight.numpy(), other.fc1.weight.numpy())
    with flow.no_grad():
        other.fc1.weight.fill_(0)
    assert weight.numpy().any()


def test_load_state_dict_converts_and_assigns():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2).double()
    a.load_state_dict(b.state_dict())
    assert a.weight.dtype is flow.float32
    own = a.weight
    a.load_state_dict(b.state_dict(), assign=True)
    assert a.weight is own
    assert a.weight.dtype is flow.float64


def test_strict_loading_lists_everything():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.more = nn.ReLU()

    m = Other()
    state = {"fc.weight": flow.ones(5, 5), "extra": flow.ones(1), "more.x": flow.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Other:\n\t")
    assert ("size mismatch for fc.weight: copying a param with shape (5, 5) from checkpoint, the shape in "
            "current model is (3, 2).") in text
    assert 'Missing key(s) in state_dict: "fc.bias".' in text
    assert 'Unexpected key(s) in state_dict: "extra", "more.x".' in text
    fits = {"fc.weight": flow.ones(3, 2), "extra": flow.ones(1)}
    got = m.load_state_dict(fits, strict=False)
    assert got.missing_keys == ["fc.bias"]
    assert got.unexpected_keys == ["extra"]
    assert repr(got) == "_IncompatibleKeys(missing_keys=['fc.bias'], unexpected_keys=['extra'])"
    assert m.fc.weight.numpy().all()
    with pytest.raises(TypeError, match="not a dictionary"):
        m.load_state_dict([1])
    with pytest.raises(RuntimeError, match="Tensor-like object from checkpoint but received"):
        m.load_state_dict({"fc.weight": "ones", "fc.bias": flow.ones(3)})


def test_a_missing_batch_count_is_no_error():
    bn = nn.BatchNorm1d(2)
    state = {k: v for k, v in nn.BatchNorm1d(2).state_dict().items() if k != "num_batches_tracked"}
    assert repr(bn.load_state_dict(state)) == "<All keys matched successfully>"


def test_extra_state_and_hooks_of_states():
    class Counter(nn.Module):
        n = 3

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    m, other = nn.Sequential(Counter()), nn.Sequential(Counter())
    m[0].n = 8
    other.load_state_dict(m.state_dict())
    assert other[0].n == 8
    seen = []
    handle = m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    m.load_state_dict({})
    handle.remove()
    with pytest.raises(RuntimeError, match="_extra_state"):
        m.load_state_dict({})
    m.register_load_state_dict_pre_hook(
        lambda module, state, prefix, *rest: state.update({k.removeprefix("old."): state.pop(k)
                                                           for k in list(state)}))
    m.load_state_dict({"old.0._extra_state": {"n": 1}})
    assert m[0].n == 1
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: seen.append(list(state)))
    m.state_dict()
    assert seen == [["0._extra_state"]]


# ---- recursive changes
def test_train_eval_apply_requires_grad_zero_grad():
    net = Net()
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    names = []
    net.apply(lambda m: names.append(type(m).__name__))
    assert names == ["Linear", "Linear", "Net"]
    net(flow.ones(1, 3)).sum().backward()
    grad = net.fc1.weight.grad
    net.zero_grad(set_to_none=False)
    assert not net.fc1.weight.grad.numpy().any()
    assert net.fc1.weight.grad.shape == grad.shape
    net.zero_grad()
    assert net.fc1.weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_conversion_keeps_the_objects():
    net = Net()
    net.register_buffer("count", flow.tensor([3]))
    net(flow.ones(1, 3)).sum().backward()
    before = list(net.parameters())
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters()))
    assert {p.dtype for p in net.parameters()} == {flow.float64}
    assert net.fc1.weight.grad.dtype is flow.float64
    assert net.scale.dtype is flow.float64
    assert net.count.dtype is flow.int64
    assert net(flow.ones(1, 3).double()).dtype is flow.float64
    assert {p.dtype for p in net.half().parameters()} == {flow.float16}
    assert {p.dtype for p in net.to(flow.float32).parameters()} == {flow.float32}
    assert {p.dtype for p in net.to(flow.ones(1).double()).parameters()} == {flow.float64}
    assert {p.dtype for p in net.to("cpu", flow.float32).parameters()} == {flow.float32}
    assert net.float().cpu() is net
    assert all(p.requires_grad and p.is_leaf for p in net.parameters())
    with pytest.raises(RuntimeError, match="(?i)cuda"):
        net.to("cuda")


# ---- hooks
def test_forward_hooks_and_their_handles():
    m, calls = nn.Linear(2, 2), []
    x = flow.ones(1, 2)
    plain = m(x).numpy()
    first = m.register_forward_pre_hook(lambda mod, args: calls.append("pre") or (args[0] * 2,))
    second = m.register_forward_hook(lambda mod, args, out: calls.append("post") or out + 1)
    third = m.register_forward_hook(lambda mod, args, out: calls.append("seen"), prepend=True)
    np.testing.assert_allclose(m(x).detach().numpy(), (m.forward(x * 2) + 1).detach().numpy())
    assert calls == ["pre", "seen", "post"]
    for handle in (first, second, third):
        handle.remove()
    np.testing.assert_array_equal(m(x).numpy(), plain)
    with m.register_forward_hook(lambda mod, args, out: out * 0):
        assert not m(x).numpy().any()
    assert m(x).numpy().any()


def test_hooks_with_kwargs_and_always_call():
    class Scale(nn.Module):
        def forward(self, x, by=1.0):
            if by == 0:
                raise ValueError("no")
            return x * by

    m, seen = Scale(), []
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    assert float(m(flow.ones(()), by=2)) == 3
    assert seen[0] == {"by": 3}
    with pytest.raises(ValueError, match="no"):
        m(flow.ones(()), by=-1)
    assert seen[-1] is None
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(TypeError, match="new_args, new_kwargs"):
        m(flow.ones(()), by=1)


def test_full_backward_hooks_see_and_change_gradients():
    m = nn.Linear(2, 3)
    seen = []
    m.register_full_backward_pre_hook(lambda mod, out: seen.append(("pre", out[0].numpy().copy())))
    handle = m.register_full_backward_hook(lambda mod, gin, gout: seen.append((gin[0].numpy().copy(),
                                                                               gout[0].numpy().copy()))
                                           or (gin[0] * 10,))
    x = flow.ones(4, 2, requires_grad=True)
    m(x).sum().backward()
    want = np.tile(m.weight.numpy().sum(0), (4, 1))
    assert seen[0][0] == "pre"
    np.testing.assert_array_equal(seen[0][1], np.ones((4, 3)))
    np.testing.assert_allclose(seen[1][0], want, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), want * 10, rtol=1e-6)
    np.testing.assert_allclose(m.weight.grad.numpy(), np.full((3, 2), 4.0))
    handle.remove()
    x.grad = None
    m(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6)
    got = []
    m.register_full_backward_hook(lambda mod, gin, gout: got.append(gin))
    m(flow.ones(1, 2)).sum().backward()                 # no input requires a gradient
    assert got == [(None,)]


# ---- copies and printing
def test_copies_are_independent():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(other) is Net
        np.testing.assert_array_equal(other.fc1.weight.numpy(), net.fc1.weight.numpy())
        with flow.no_grad():
            other.fc1.weight.fill_(0)
        assert net.fc1.weight.numpy().any()
        assert isinstance(other.fc1.weight, nn.Parameter)
        assert other.fc1.weight.requires_grad
        other(flow.ones(1, 3)).sum().backward()
        assert net.fc1.weight.grad is None
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    other = copy.deepcopy(tied)
    assert other[0].weight is other[1].weight


REPRS = {
    "nn.Linear(3, 4)": "Linear(in_features=3, out_features=4, bias=True)",
    "nn.Conv2d(3, 8, 3, 2, 1, bias=False)": "Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
    "bias=False)",
    "nn.Conv2d(4, 8, 3, groups=2, dilation=2)": "Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), "
    "dilation=(2, 2), groups=2)",
    "nn.Conv1d(4, 8, 3)": "Conv1d(4, 8, kernel_size=(3,), stride=(1,))",
    "nn.BatchNorm2d(8)": "BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
    "nn.LayerNorm(4)": "LayerNorm((4,), eps=1e-05, elementwise_affine=True)",
    "nn.MaxPool2d(2)": "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1))",
    "nn.AvgPool2d(2)": "AvgPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False)",
    "nn.Dropout(0.5)": "Dropout(p=0.5, inplace=False)", "nn.Flatten()": "Flatten(start_dim=1, end_dim=-1)",
    "nn.Embedding(10, 3)": "Embedding(10, 3)",
    "nn.Embedding(10, 3, padding_idx=0)": "Embedding(10, 3, padding_idx=0)",
    "nn.ReLU()": "ReLU()", "nn.ReLU(inplace=True)": "ReLU(inplace=True)", "nn.ReLU6()": "ReLU6()",
    "nn.GELU()": "GELU()",
    "nn.LeakyReLU(0.1)": "LeakyReLU(negative_slope=0.1)", "nn.Softmax(dim=1)": "Softmax(dim=1)",
    "nn.Upsample(scale_factor=2)": "Upsample(scale_factor=2, mode=nearest)",
    "nn.ReflectionPad2d(1)": "ReflectionPad2d((1, 1, 1, 1))", "nn.CrossEntropyLoss()": "CrossEntropyLoss()",
    "nn.MSELoss()": "MSELoss()", "nn.AdaptiveAvgPool2d((1, 1))": "AdaptiveAvgPool2d(output_size=(1, 1))",
    "nn.ConvTranspose2d(3, 4, 2)": "ConvTranspose2d(3, 4, kernel_size=(2, 2), stride=(1, 1))",
    "nn.LSTM(3, 4, 2)": "LSTM(3, 4, num_layers=2)",
    "nn.AdaptiveAvgPool1d(3)": "AdaptiveAvgPool1d(output_size=3)",
    "nn.AdaptiveMaxPool2d((2, None), True)": "AdaptiveMaxPool2d(output_size=(2, None))",
    "nn.AdaptiveMaxPool3d(2)": "AdaptiveMaxPool3d(output_size=2)",
    "nn.ConvTranspose1d(4, 4, 3, 2, 1, 1, groups=2, bias=False, dilation=2)": "ConvTranspose1d(4, 4, "
    "kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), output_padding=(1,), groups=2, bias=False)",
    "nn.ConvTranspose3d(1, 2, 1)": "ConvTranspose3d(1, 2, kernel_size=(1, 1, 1), stride=(1, 1, 1))",
    "nn.GroupNorm(2, 4)": "GroupNorm(2, 4, eps=1e-05, affine=True)",
}


@pytest.mark.parametrize("text", REPRS)
def test_repr_of_layers(text):
    assert repr(eval(text)) == REPRS[text]
    assert eval(text)._shallow_repr() == REPRS[text]


def test_repr_of_networks():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Identity()))
    assert repr(net) == ("Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): "
                         "Sequential(\n    (0): ReLU()\n    (1): Identity()\n  )\n)")
    assert net._shallow_repr() == "Sequential()"
    assert repr(nn.Module()) == "Module()"

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def extra_repr(self):
            return "first\nsecond"

    assert repr(Two()) == "Two(\n  first\n  second\n  (relu): ReLU()\n)"


def test_aliases_of_both_generations():
    x, y = flow.tensor([[1.0, 2.0]]), flow.tensor([[0.0, 4.0]])
    assert nn.MSELoss(x, y).shape == (1,)                # OneFlow 0.4's function returns shape (1,)
    assert nn.MSELoss()(x, y).shape == ()
    assert nn.MSELoss(x, y, reduction="sum").tolist() == [5.0]
    assert nn.L1Loss(input=x, target=y).tolist() == [1.5]
    assert isinstance(nn.BCELoss(weight=x), nn.Module)
    assert isinstance(nn.BCELoss(x), nn.Module)
    assert nn.PixelShuffle(flow.ones(1, 4, 2, 2), 2).shape == (1, 1, 4, 4)
    assert isinstance(nn.PixelShuffle(2), nn.Module)
    assert "Called with blobs or tensors" in nn.PixelShuffle.__doc__


def test_train_and_eval_call_overridden_train_of_children():
    """A frozen batch norm overrides train; LeViT uses it for caching."""
    told = []

    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            told.append(mode)
            return super().train(False)

    m = nn.Sequential(nn.Dropout(), nn.Sequential(Frozen(2), nn.ReLU()))
    assert m.train() is m and m.eval() is m and m.train(True) is m
    assert told == [True, False, True]
    assert [x.training for x in m.modules()] == [True, True, True, False, True]
