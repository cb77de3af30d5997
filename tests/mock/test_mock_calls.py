"""PyTorch calls whose arguments have other names or positions in flowedu or are missing there;
mock/translate.py and the wrappers in mock/insides handle them. mock/test_mock_signatures.py checks that the
list is complete.
"""
import copy
import importlib
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu import mock
from flowedu.diagnostics.function import PublicFunction
from flowedu.errors import CallError, FlowError, UnsupportedError


@pytest.fixture
def torch():
    with mock.enable("torch"):
        yield importlib.import_module("torch")


A = np.arange(12, dtype="f4").reshape(3, 4) % 7 - 2
# {call of a program: the same call in flowedu}
CALLS = dict(line.split("  ->  ") for line in """
torch.max(x, other=-x)  ->  flow.max(x, -x)
x.min(other=-x)  ->  flow.min(x, -x)
torch.sum(x, axis=1)  ->  flow.sum(x, 1)
x.mean(axis=0, keepdims=True)  ->  x.mean(0, True)
torch.cat([x, x], axis=1)  ->  flow.cat([x, x], 1)
torch.stack((x, x), axis=1)  ->  flow.stack((x, x), 1)
torch.add(x1=x, x2=x)  ->  x + x
torch.sin(a=x)  ->  x.sin()
torch.sin(x=x)  ->  x.sin()
torch.atleast_2d(input=x)  ->  x
torch.swapaxes(x, axis0=0, axis1=1)  ->  x.t()
x.swapaxes(axis0=0, axis1=1)  ->  x.t()
torch.det(input=x[:, :3])  ->  flow.det(x[:, :3])
torch.linalg.norm(input=x)  ->  flow.linalg.norm(x)
torch.linalg.matrix_norm(input=x)  ->  flow.linalg.norm(x)
torch.linalg.vector_norm(input=x)  ->  flow.linalg.norm(x)
torch.isin(x, test_element=1)  ->  x == 1
torch.isin(element=1, test_elements=x)  ->  (x == 1).any()
torch.scatter(x, 1, i, value=9.0)  ->  flow.scatter(x, 1, i, 9.0)
x.scatter(1, i, value=9.0)  ->  x.scatter(1, i, 9.0)
x.clone().scatter_(1, i, value=9.0)  ->  x.scatter(1, i, 9.0)
torch.split(tensor=x, split_size_or_sections=2)[1]  ->  x[2:]
x.split(split_size=2)[1]  ->  x[2:]
torch.tensor_split(x, sections=3)[1]  ->  x[1:2]
x.tensor_split(indices=(1, 2))[1]  ->  x[1:2]
torch.vdot(x[0], other=x[1])  ->  flow.dot(x[0], x[1])
x[0].vdot(other=x[1])  ->  flow.dot(x[0], x[1])
torch.zeros(size=(2, 3))  ->  flow.zeros(2, 3)
torch.ones(2, 3, layout=torch.strided, pin_memory=False)  ->  flow.ones(2, 3)
x.new_ones(size=(2,))  ->  flow.ones(2)
x.view(size=(4, 3))  ->  x.view(4, 3)
torch.arange(end=5)  ->  flow.arange(5)
torch.arange(2, end=5)  ->  flow.arange(2, 5)
torch.randint(high=1, size=(2,))  ->  flow.zeros(2).long()
torch.randint(1, size=(2,))  ->  flow.zeros(2).long()
torch.randint_like(x, high=1)  ->  flow.zeros(3, 4)
torch.repeat_interleave(repeats=i[:, 0])  ->  flow.repeat_interleave(i[:, 0])
torch.from_numpy(ndarray=a)  ->  x
torch.from_dlpack(ext_tensor=a)  ->  x
torch.from_dlpack(a, device="cpu", copy=True)  ->  x
x.bool(memory_format=torch.preserve_format)  ->  x.bool()
x.float(memory_format=torch.contiguous_format)  ->  x
torch.mm(x, x.t(), out_dtype=None)  ->  x @ x.t()
torch.linalg.solve(e, x, left=True)  ->  x
torch.linalg.matrix_norm(e, dtype=torch.float64)  ->  flow.linalg.norm(e.double())
x.numpy(force=False)  ->  x
torch.norm(x, 2, 1, False, None, torch.float64)  ->  flow.norm(x.double(), 2, 1)
torch.nn.functional.normalize(x, 2.0, 1, 1e-12, None)  ->  flow.nn.functional.normalize(x)
torch.nn.functional.softmax(x, 1, 3, torch.float64)  ->  flow.softmax(x.double(), 1)
torch.linalg.diagonal(c)  ->  c.diagonal(0, -2, -1)
torch.linalg.diagonal(c, offset=1, dim1=0, dim2=1)  ->  c.diagonal(1, 0, 1)
torch.linalg.cross(e, e + 1)  ->  flow.cross(e, e + 1, 1)
torch.range(1, 4)  ->  flow.arange(1.0, 5.0)
torch.range(0, 1, 0.25)  ->  flow.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
torch.jit.annotate(int, x)  ->  x
torch.result_type(tensor=x, other=1)  ->  flow.float32
torch.nn.Hardtanh(min_value=-1, max_value=1)(x)  ->  x.clip(-1, 1)
torch.nn.Embedding(3, 2, _freeze=False).weight.shape  ->  (3, 2)
torch.nn.ModuleList([torch.nn.ReLU()]).pop(key=0)(x)  ->  x.relu()
len([*torch.nn.ReLU().modules(remove_duplicate=True)])  ->  1
""".strip().splitlines())


def _values(torch) -> dict:
    x = torch.tensor(A)
    return {"torch": torch, "flow": flow, "a": A, "x": x, "i": torch.tensor([[0], [1], [2]]),
            "e": torch.eye(3), "c": torch.arange(24.0).reshape(2, 3, 4)}


@pytest.mark.parametrize("call", CALLS)
def test_pytorch_calls_match_flowedu_calls(torch, call):
    got, want = eval(call, _values(torch)), eval(CALLS[call], _values(torch))
    np.testing.assert_array_equal(got, want)
    assert getattr(got, "dtype", None) is getattr(want, "dtype", None) or isinstance(got, np.ndarray)


REFUSED = {
    "x.bool(memory_format=torch.channels_last)": "memory_format",
    "torch.mm(x, x.t(), out_dtype=torch.float64)": "out_dtype",
    "x.numpy(force=True)": "force",
    "torch.nn.Embedding(3, 2, _freeze=True)": "_freeze",
    "[*torch.nn.ReLU().modules(remove_duplicate=False)]": "remove_dup",
    "torch.nn.utils.rnn.pad_sequence([x, x], padding_side='left')": "padding_side",
    "torch.zeros(2, layout=3)": "layout", }


@pytest.mark.parametrize("call", REFUSED)
def test_arguments_that_would_change_results_are_refused(torch, call):
    with pytest.raises(UnsupportedError, match=f"(?s){REFUSED[call]}.*cannot be followed.*expected.*fix"):
        eval(call, _values(torch))


WRONG = ["torch.sin(x, 1, axis=2)", "torch.sin(x=x, input=x)", "torch.sum(x, 0, axis=1)",
         "torch.sin(out=x)", "torch.sin(axis=1)",
         "torch.nn.Embedding(3, foreach=True)", "x.sum(kepdim=True)", "torch.cat(axis=1)",
         "torch.sin('x', out=x)"]


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call_raises_the_usual_error(torch, call):
    with pytest.raises(FlowError, match="(?s)expected.*got.*fix"):
        eval(call, _values(torch))


@pytest.mark.parametrize("call", ["flow.sum(x, axis=1)", "flow.sin(x, out=x)",
                                  "flow.nn.Embedding(3, 2, _freeze=False)"])
def test_without_the_mock_arguments_are_flowedus(call):
    with mock.enable("oneflow"), pytest.raises(CallError, match="there is no argument"):
        eval(call, {"flow": flow, "x": flow.ones(2, 3)})
    with mock.enable("torch"), mock.enable("oneflow"):
        eval(call, {"flow": flow, "x": flow.ones(2, 3)})


OUT = ["sin(x, out={})", "add(x, x, alpha=2, out={})", "sum(x, 0, out={})", "matmul(x, x.t(), out={})",
       "cat([x, x], out={})", "stack([x, x], 1, out={})", "arange(5, out={})", "linspace(0, 1, 4, out={})",
       "where(x > 0, x, -x, out={})",
       "cumsum(x, 1, out={})", "clamp(x, min=0, out={})", "linalg.det(e, out={})", "zeros(2, 3, out={})",
       "norm(input=x, dim=0, out={})", "linalg.norm(input=x, dim=0, out={})",
       "sum(axis=0, x=x, keepdims=True, out={})", "arange(end=4, out={})"]


@pytest.mark.parametrize("call", OUT)
def test_out_receives_the_result_and_is_returned(torch, call):
    values = _values(torch)
    want = eval("torch." + call.format("None"), values)
    for out in (torch.empty(0), torch.full(want.shape, 7.0)):
        values["out"] = out
        assert eval("torch." + call.format("out"), values) is out
        assert out.shape == want.shape and torch.equal(out, want.float())
    values["out"] = torch.empty(want.numel() + 1)
    with pytest.raises(CallError, match="(?s)shape of out.*fix"):
        eval("torch." + call.format("out"), values)


@pytest.mark.torch
def test_every_name_that_has_out_in_pytorch_takes_it():
    real = pytest.importorskip("torch")
    with mock.enable("torch"):
        compared = 0
        for place, prefix in (("torch", ""), ("torch.linalg", "linalg_")):
            module = importlib.import_module(place)
            for name in dir(real.linalg if prefix else real):
                schemas = real._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}")
                if (any(a.is_out for s in schemas for a in s.arguments) and name in dir(module)
                    and name != "random"):
                    f = getattr(module, name)
                    parameters = inspect.signature(f.function).parameters.values()
                    assert isinstance(f, PublicFunction) and f.owner is None, name
                    assert not any(p.kind is p.VAR_KEYWORD or p.name == "out" for p in parameters), name
                    compared += 1
        assert compared > 200


def test_out_in_a_graph(torch):
    class Two(torch.nn.Graph):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def build(self, x):
            y, z = torch.empty(2, 3), torch.empty(self.n)
            torch.add(x, 1, out=y)
            torch.sum(y, axis=1, out=z)
            return y, z

    y, z = Two(2)(torch.ones(2, 3))
    assert y.tolist() == [[2.0] * 3] * 2 and z.tolist() == [6.0, 6.0]
    with pytest.raises(CallError, match="shape of out"):
        Two(0)(torch.ones(2, 3))


def test_out_of_two(torch):
    x, v, i = torch.tensor(A), torch.empty(3), torch.empty(3, dtype=torch.int64)
    got = torch.max(x, 1, out=(v, i))
    assert got.values is v and got.indices is i and torch.equal(v, x.amax(1)) and torch.equal(i, x.argmax(1))
    with pytest.raises(CallError, match="as many tensors"):
        torch.max(x, 1, out=v)


def test_out_over_an_input_and_a_view_of_one(torch):
    x = torch.tensor(A)
    rows = x[1:]
    assert torch.add(x[:-1], 1, out=rows) is rows
    np.testing.assert_array_equal(x, np.concatenate([A[:1], A[:-1] + 1]))
    assert torch.mul(x, 2, out=x) is x and x[0, 3] == 2 * A[0, 3]


def test_invalid_out_arguments_are_refused(torch):
    x = torch.tensor(A, requires_grad=True)
    with pytest.raises(UnsupportedError, match="there is no gradient"):
        torch.sin(x, out=torch.empty(3, 4))
    with torch.no_grad():
        torch.sin(x, out=torch.empty(3, 4))
    with pytest.raises(CallError, match="type of out"):
        torch.sin(x.detach(), out=torch.empty(3, 4, dtype=torch.int64))
    with pytest.raises(CallError, match="out is not a tensor"):
        torch.sin(x.detach(), out=A)


# --- state_dict
# ------------------------------------------------------------------------------------------------------

def test_a_state_is_detached_under_torch_and_live_elsewhere(torch):
    """Update a copy of a state with +=, as in the model averaging of federated learning."""
    class Mine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.line, self.norm = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)

        def state_dict(self, *args, **kwargs):
            return super().state_dict(*args, **kwargs)

    net = torch.nn.Sequential(Mine(), torch.nn.Linear(3, 1))
    state = net.state_dict()
    assert not any(t.requires_grad for t in state.values())
    assert net.state_dict(keep_vars=True)["1.bias"] is net[1].bias
    mean = copy.deepcopy(state)
    for name in mean:
        mean[name] += state[name]
        mean[name] = torch.div(mean[name], 2)
        assert torch.equal(mean[name].float(), state[name].float())
    state["1.bias"].fill_(7.0)                                            # shares the memory
    assert net[1].bias.item() == 7.0
    with mock.enable("oneflow"):
        assert not net.state_dict()["1.bias"].requires_grad               # torch is still mocked


def test_a_state_has_the_parameters_without_the_mock():
    net = flow.nn.Linear(2, 3)
    for name in ("oneflow", "torch", "oneflow"):
        with mock.enable(name):
            assert (net.state_dict()["bias"] is net.bias) == (name == "oneflow")
    assert net.state_dict()["bias"] is net.bias


# --- dtypes of lists
# -------------------------------------------------------------------------------------------------

LISTS = [[np.float64(1.5)], [1.5, np.float64(1.5)], [[np.float64(1.5)], [1]], [1, np.float64(2)],
         (np.float64(1.5),),
         [np.float16(1), 1.5], [np.float32(1), 1], [np.int32(1), 1.5], [np.int32(1), 1], [1.5],
         [True, np.float64(1)], [], [np.float16(1), np.float64(1)], np.float64(1.5), [np.uint8(1), 2]]


@pytest.mark.torch
@pytest.mark.parametrize("data", LISTS, ids=str)
@pytest.mark.parametrize("name", ["tensor", "as_tensor"])
def test_the_dtype_of_a_list_is_pytorchs(name, data):
    real = getattr(pytest.importorskip("torch"), name)(data)
    with mock.enable("torch"):
        got = getattr(importlib.import_module("torch"), name)(data)
        assert str(got.dtype).partition(".")[2] == str(real.dtype).partition(".")[2]
        np.testing.assert_array_equal(got, real.tolist())
        half = getattr(importlib.import_module("torch"), name)(data, dtype=flow.float16)
        assert half.dtype is flow.float16
