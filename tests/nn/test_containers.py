"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict: as lists and dicts, printing, copying."""
import copy
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn


def list_module_names(m):
    return [n for n, _ in m.named_modules()][1:]


def test_sequential():
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    net = nn.Sequential(a, b, c)
    x = flow.ones(4, 2)
    np.testing.assert_array_equal(net(x).numpy(), c(b(a(x))).numpy())
    assert len(net) == 3
    assert net[0] is a
    assert net[-1] is c
    assert list(net) == [a, b, c]
    assert b in net
    assert isinstance(net[:2], nn.Sequential)
    assert list(net[1:]) == [b, c]
    assert list(net[1:].state_dict()) == ["2.weight", "2.bias"]          # a slice keeps the names
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a
    assert list_module_names(named) == ["first", "second"]
    assert repr(named[:1]) == "Sequential(\n  (first): Linear(in_features=2, out_features=3, bias=True)\n)"
    assert list_module_names(net + nn.Sequential(nn.Tanh())) == ["0", "1", "2", "3"]
    assert nn.Sequential()(x) is x


def test_sequential_changes():
    net = nn.Sequential(nn.ReLU())
    assert net.append(nn.Tanh()) is net
    net.extend([nn.Sigmoid(), nn.GELU()]).insert(1, nn.ELU())
    assert [type(m).__name__ for m in net] == ["ReLU", "ELU", "Tanh", "Sigmoid", "GELU"]
    del net[1]
    assert list_module_names(net) == ["0", "1", "2", "3"]
    net[0] = nn.SiLU()
    assert isinstance(net.pop(0), nn.SiLU)
    assert [type(m).__name__ for m in net] == ["Tanh", "Sigmoid", "GELU"]
    del net[1:]
    assert len(net) == 1


def test_module_list():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(layers) == 3
    assert isinstance(layers[1:], nn.ModuleList)
    assert list_module_names(layers[1:]) == ["0", "1"]
    layers.append(nn.ReLU())
    layers += [nn.Tanh()]
    layers.insert(0, nn.Identity())
    assert list_module_names(layers) == ["0", "1", "2", "3", "4", "5"]
    assert isinstance(layers[0], nn.Identity)
    assert len(list(layers.parameters())) == 6
    assert len(layers + [nn.ReLU()]) == 7
    with pytest.raises(NotImplementedError, match="forward"):
        layers(flow.ones(1, 2))


def test_module_dict():
    d = nn.ModuleDict({"relu": nn.ReLU()})
    d["fc"] = nn.Linear(2, 2)
    d.update([("tanh", nn.Tanh())])
    assert list(d) == ["relu", "fc", "tanh"]
    assert "fc" in d
    assert len(d) == 3
    assert isinstance(d.pop("tanh"), nn.Tanh)
    assert [k for k, _ in d.items()] == ["relu", "fc"]
    assert list(d.values())[0] is d["relu"]
    del d["relu"]
    assert list(d.state_dict()) == ["fc.weight", "fc.bias"]
    d.clear()
    assert not len(d)
    with pytest.raises(KeyError):
        d["absent"]


def test_parameter_containers():
    ps = nn.ParameterList([flow.ones(2), nn.Parameter(flow.zeros(2, 3))])
    ps.append(flow.ones(1))
    ps += [flow.ones(1)]
    assert len(ps) == 4
    assert all(isinstance(p, nn.Parameter) for p in ps)
    assert list(ps.state_dict()) == ["0", "1", "2", "3"]
    assert len(ps[1:]) == 3
    ps[-1] = flow.zeros(5)
    assert ps[3].shape == (5,)
    assert repr(ps[:2]) == ("ParameterList(\n  (0): Parameter containing: [flowedu.float32 of size 2]\n"
                            "  (1): Parameter containing: [flowedu.float32 of size 2x3]\n)")
    d = nn.ParameterDict({"a": flow.ones(2)})
    d["b"] = flow.zeros(3)
    d.update({"c": flow.ones(1)})
    assert list(d) == ["a", "b", "c"]
    assert d.get("q") is None
    assert d.pop("c").shape == (1,)
    del d["b"]
    assert "a" in d
    assert list(d.items())[0][1] is d["a"]
    assert repr(d) == "ParameterDict(\n  (a): Parameter containing: [flowedu.float32 of size 2]\n)"
    assert len(copy.deepcopy(d)) == 1


nested = st.recursive(st.integers(1, 3), lambda x: st.lists(x, max_size=3), max_leaves=6)


@given(st.lists(nested, max_size=3), st.integers(0, 5))
def test_parameter_lists_within_lists(sizes, at):
    """Checks lengths, items, names, and trained parameters; an item may be replaced by one of the other
    type.
    """
    def made(x):
        return nn.ParameterList([made(y) for y in x]) if isinstance(x, list) else flow.full((x,), float(x))

    def walked(x, name=""):
        below = [walked(y, f"{name}{i}.") if isinstance(y, list) else [(f"{name}{i}", y)]
                 for i, y in enumerate(x)]
        return [p for found in below for p in found]

    def check(ps, sizes):
        assert len(ps) == len(sizes) and [len(p) if isinstance(
            p, nn.ParameterList) else p.numel() for p in ps] == [
                len(x) if isinstance(x, list) else x for x in sizes]
        assert {n: p.numel()
                for n, p in ps.named_parameters()} == dict(walked(sizes)) and set(ps.state_dict()) == {
                    n for n, _ in walked(sizes)}
        assert (repr(ps).count("of size") == len(walked(sizes)) and all(p.requires_grad
                                                                        for p in ps.parameters()))

    ps = made(sizes)
    check(ps, sizes)
    if sizes:
        at %= len(sizes)
        sizes[at] = [2] if not isinstance(sizes[at], list) else 3
        ps[at] = made(sizes[at])
        check(ps, sizes)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: nn.Sequential(nn.ReLU())[1], IndexError, "index 1 is out of range"),
    (lambda: nn.Sequential(3), TypeError, "is not a Module subclass"),
    (lambda: nn.ModuleList([nn.ReLU()])[-2], IndexError, "out of range"),
    (lambda: nn.ModuleList().extend(3), TypeError, "should be called with an iterable"),
    (lambda: nn.ModuleList().insert(0, 3), TypeError, "not a Module subclass"),
    (lambda: nn.ModuleDict(3), TypeError, "should be called with an iterable of key/value pairs"),
    (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), KeyError, 'can\'t contain "."'),
    (lambda: nn.ModuleDict({"keys": nn.ReLU()}), KeyError, "already exists"),
    (lambda: nn.ParameterList([3]), TypeError, "holds parameters"),
    (lambda: nn.ParameterList([flow.ones(1)])[3], IndexError, "out of range"),
    (lambda: nn.ParameterList().extend(flow.ones(3)), TypeError, "should be called with an iterable"),
])
def test_invalid_calls_of_containers_are_refused(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
