"""A subclass that overrides a method which PyTorch calls changes the result, or is refused.

called_by_pytorch.json lists the methods that PyTorch calls: `python tests/nn/test_overrides.py` writes it.
"""
import json
import warnings
from pathlib import Path

import pytest

import flowedu as flow
from flowedu.errors import UnsupportedError

from .called_methods import make_table, trace

TABLE = Path(__file__).with_name("called_by_pytorch.json")
CALLED = json.loads(TABLE.read_text(encoding="utf-8"))
CLASSES = sorted(CALLED["methods"])
# Calls inside the package that no override changes: {method: the reason}.
INNER = {
    "profile_hook_step": "only if `step` is the library's", "step": "wrapped by profile_hook_step",
    "_accelerator_graph_capture_health_check": "a check of captured GPU graphs",
    "register_forward_pre_hook": "how PyTorch's lazy layers find their first call",
    "_register_load_state_dict_pre_hook": "how PyTorch's lazy layers load",
    "register_buffer": "of lazy layers: the buffers of the ordinary layer are taken",
    "__iter__": "of lists: children are listed by their table", "items": "only for printing"}


@pytest.fixture
def torch():
    with flow.mock.enable("torch"):
        import torch
        yield torch


def is_refused(cls, name: str) -> bool:
    try:
        type("Refused", (cls,), {name: lambda self, *args, **kwargs: None})
    except UnsupportedError as e:
        return name in str(e)
    return False


@pytest.mark.parametrize("path", CLASSES)
def test_methods_that_pytorch_calls_are_called_or_refused(path, torch):
    kind, name = path.split(".")
    cls, methods = getattr(getattr(torch, kind), name), set(CALLED["methods"][path].split())
    refused = {method for method in methods if is_refused(cls, method)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = trace(torch, kind, name, methods - refused)
    ignored = methods - refused - called
    assert ignored <= INNER.keys(), sorted(ignored - INNER.keys())


@pytest.mark.torch
def test_the_table_is_pytorchs():
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != CALLED["version"]:
        pytest.skip("another version of PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make_table(torch) == CALLED["methods"]


def conv_forward(torch):
    class Conv(torch.nn.Conv2d):
        def _conv_forward(self, x, w, b):
            return torch.nn.functional.conv2d(x, torch.ones_like(w), b)
    layer = Conv(1, 1, 1, bias=False)
    layer.weight.data.fill_(3.0)
    return layer(torch.ones(1, 1, 1, 2))


def conv_forward_of_an_instance(torch):
    layer = torch.nn.Conv1d(1, 1, 1, bias=False)

    def multiply(x, w, b):
        return x * 5

    layer._conv_forward = multiply
    return layer(torch.ones(1, 1, 2))


def output_padding(torch):
    class Up(torch.nn.ConvTranspose2d):
        def _output_padding(self, *args):
            return [1, 0]
    layer = Up(1, 1, 1, stride=2, bias=False)
    layer.weight.data.fill_(2.0)
    return layer(torch.ones(1, 1, 2, 1))


def check_input_dim(torch):
    class Norm(torch.nn.BatchNorm1d):
        def _check_input_dim(self, x):
            pass
    return Norm(2).eval()(torch.full((1, 2, 1, 1), 2.0))


def instance_norm(torch):
    class Norm(torch.nn.InstanceNorm1d):
        def _apply_instance_norm(self, x):
            return x + 1
    return Norm(2)(torch.ones(2, 3))


def hidden_size(torch):
    class Net(torch.nn.LSTM):
        def check_forward_args(self, input, hidden, batch_sizes):
            raise OverflowError(f"{tuple(input.shape)} {len(hidden)}")
    try:
        Net(2, 3, batch_first=True)(torch.ones(4, 1, 2))
    except OverflowError as e:
        return str(e)


def permuted_hidden(torch):
    class Net(torch.nn.GRU):
        def permute_hidden(self, hx, permutation):
            return hx * 0 + 7
    return Net(2, 1)(torch.ones(4, 1, 2))[1]


def child_apply(torch):
    class Kept(torch.nn.Linear):
        def _apply(self, fn, recurse=True):
            return self
    net = torch.nn.Sequential(Kept(1, 1), torch.nn.Linear(1, 1)).double()
    return [str(p.dtype) for p in net.parameters()]


def named_members(torch):
    class Net(torch.nn.Linear):
        def _named_members(self, *args, **kwargs):
            yield "only", self.weight
    net = Net(1, 1)
    return [[name for name, _ in net.named_parameters()], len(list(net.parameters()))]


def call_impl(torch):
    class Net(torch.nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) * 0 + 4
    return Net(1, 1)(torch.ones(2, 1))


def blocks(torch):
    class Layer(torch.nn.TransformerEncoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            return x * 0

        def _ff_block(self, x):
            return x * 2
    layer = Layer(2, 1, 2, dropout=0.0, norm_first=True)
    return layer(torch.tensor([[[1.0, -1.0]]])).round(decimals=3)


def registered(torch):
    class Net(torch.nn.Module):
        def register_parameter(self, name, param):
            super().register_parameter(f"{name}_own", param)
    net = Net()
    net.w = torch.nn.Parameter(torch.ones(1))
    return sorted(net.state_dict())


def loaded(torch):
    class Net(torch.nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            state_dict[f"{prefix}weight"] = state_dict[f"{prefix}weight"] + 1
            super()._load_from_state_dict(state_dict, prefix, *args)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[f"{prefix}extra"] = torch.ones(1)
    net = torch.nn.Sequential(Net(1, 1))
    keys = sorted(net.state_dict())
    net.load_state_dict({"0.weight": torch.ones(1, 1), "0.bias": torch.zeros(1)})
    return [keys, net[0].weight.tolist()]


def reset(torch):
    class Slope(torch.nn.PReLU):
        def reset_parameters(self):
            torch.nn.init.constant_(self.weight, 9.0)

        def _get_name(self):
            return "Named"

        def extra_repr(self):
            return "x"
    return [Slope().weight.tolist(), repr(Slope())]


def padding_row(torch):
    class Table(torch.nn.Embedding):
        def _fill_padding_idx_with_zero(self):
            self.weight.data.fill_(6.0)
    return Table(2, 1, padding_idx=0).weight


def optimizer_state(torch):
    class Own(torch.optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group["lr"] = 0.5
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = Own([p], lr=0.1)
    optimizer.load_state_dict(optimizer.state_dict())
    p.grad = torch.ones(1)
    optimizer.step()
    return p


def plateau(torch):
    class Never(torch.optim.lr_scheduler.ReduceLROnPlateau):
        def _is_better(self, a, best):
            return False
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = Never(optimizer, patience=0)
    schedule.step(1.0)
    return optimizer.param_groups[0]["lr"]


def closed_form(torch):
    class Own(torch.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [0.25]

        def _get_closed_form_lr(self):
            return [0.75]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Own(optimizer).step(3)
    return optimizer.param_groups[0]["lr"]


RESULTS = {
    conv_forward: [[[[1.0, 1.0]]]], conv_forward_of_an_instance: [[[5.0, 5.0]]],
    output_padding: [[[[2.0], [0.0], [2.0], [0.0]]]], check_input_dim: [[[[2.0]], [[2.0]]]],
    instance_norm: [[2.0] * 3] * 2, hidden_size: "(4, 1, 2) 2", permuted_hidden: [[[7.0]]],
    child_apply: ["torch.float32"] * 2 + ["torch.float64"] * 2, named_members: [["only"], 1],
    call_impl: [[4.0], [4.0]], blocks: [[[3.0, -3.0]]], registered: ["w_own"],
    loaded: [["0.bias", "0.extra", "0.weight"], [[2.0]]], reset: [[9.0], "Named(x)"],
    padding_row: [[6.0], [6.0]], optimizer_state: [0.5], plateau: 0.1, closed_form: 0.75}


def to_plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("program", RESULTS, ids=lambda f: f.__name__)
def test_an_override_changes_the_result(program, torch):
    result = to_plain(program(torch))
    if program is child_apply:
        result = [text.replace("flowedu", "torch") for text in result]
    if program is check_input_dim:
        result = json.loads(json.dumps(result), parse_float=lambda text: round(float(text), 3))
    assert result == RESULTS[program]


@pytest.mark.torch
@pytest.mark.parametrize("program", RESULTS, ids=lambda f: f.__name__)
def test_pytorch_has_the_stored_results(program):
    result = to_plain(program(pytest.importorskip("torch")))
    if program is check_input_dim:
        result = json.loads(json.dumps(result), parse_float=lambda text: round(float(text), 3))
    assert result == RESULTS[program]


REFUSED = {"optim.SGD": "_init_group", "optim.RAdam": "_init_group", "nn.LSTM": "_update_flat_weights",
           "nn.LazyLinear": "initialize_parameters", "nn.ParameterDict": "_key_to_attr",
           "optim.lr_scheduler.CyclicLR": "scale_fn", "optim.LBFGS": "_add_grad"}


@pytest.mark.parametrize("path", REFUSED)
def test_an_override_that_would_be_ignored_is_refused(path, torch):
    cls = torch
    for name in path.split("."):
        cls = getattr(cls, name)
    assert is_refused(cls, REFUSED[path])


def test_own_methods_of_user_defined_optimizers_are_not_refused(torch):
    class Base(torch.optim.Optimizer):
        def step(self):
            return self._init_group(1)

    class Own(Base):
        def _init_group(self, group):
            return group

    assert Own([torch.nn.Parameter(torch.ones(1))], {}).step() == 1

    class Wrapped(torch.optim.Adam):
        def _init_group(self, *args):
            return False

        def step(self):
            super().step()

    with pytest.raises(UnsupportedError, match="_init_group would be ignored"):
        p = torch.nn.Parameter(torch.ones(1))
        p.grad = torch.ones(1)
        Wrapped([p]).step()


# Pairs of layers of which one is a subclass of the other, in PyTorch: programs choose by isinstance.
SUBCLASSES = {
    ("AdaptiveAvgPool1d", "AdaptiveAvgPool2d"): False, ("AvgPool2d", "AvgPool3d"): False,
    ("BatchNorm1d", "BatchNorm2d"): False, ("Conv1d", "Conv2d"): False, ("Conv1d", "Conv3d"): False,
    ("ConstantPad1d", "ConstantPad2d"): False, ("ConstantPad2d", "ZeroPad2d"): True,
    ("ConvTranspose1d", "ConvTranspose2d"): False, ("Embedding", "EmbeddingBag"): False,
    ("Hardtanh", "ReLU6"): True, ("MaxPool1d", "MaxPool2d"): False, ("MaxUnpool1d", "MaxUnpool3d"): False,
    ("Upsample", "UpsamplingNearest2d"): True}


@pytest.mark.parametrize("pair", SUBCLASSES, ids="-".join)
def test_isinstance_separates_layers_as_in_pytorch(pair, torch):
    assert issubclass(getattr(torch.nn, pair[1]), getattr(torch.nn, pair[0])) is SUBCLASSES[pair]


def find_subclasses(torch) -> set[tuple[str, str]]:
    layers = {n: getattr(torch.nn, n) for n in dir(torch.nn) if not n.startswith("_")}
    layers = {n: c for n, c in layers.items() if isinstance(c, type)}
    return {(a, b) for a in layers for b in layers if a != b and issubclass(layers[b], layers[a])}


@pytest.mark.torch
def test_all_pairs_of_layers_are_related_as_in_pytorch(torch):
    ours, names = find_subclasses(torch), set(dir(torch.nn))
    with flow.mock.enable("torch") as mocking:
        mocking.stop()
        real = pytest.importorskip("torch")
    both = names & set(dir(real.nn))
    theirs = {pair for pair in find_subclasses(real) if both.issuperset(pair)}
    # A lazy norm is an ordinary norm before its first call, too.
    assert {pair for pair in ours if both.issuperset(pair) and "Norm" not in pair[0]} - theirs == set()
    assert theirs - ours == set()




if __name__ == "__main__":
    import torch as real_torch
    table = {"version": real_torch.__version__.partition("+")[0], "methods": make_table(real_torch)}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
