"""Values from other sources: bit-exact checkpoints, weights from other libraries, and initial values."""
import copy
import warnings

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool")
SPECIAL = [0.0, -0.0, 1.5, -2.75, np.inf, -np.inf, np.nan, 1e-45, 3e-39, -1e-40, 65504.0, 6e-8,
           3.3895e38, 1e-3]


def bits(t) -> bytes:
    """Return the memory of a contiguous tensor."""
    import ctypes
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())


def special(name: str):
    d = getattr(flow, name)
    if d.is_floating_point:
        with np.errstate(all="ignore"):
            return flow.tensor(np.array(SPECIAL + [1 + k / 128 for k in range(10)])).to(d)
    return flow.tensor(np.array([0, 1, 127, -128, -1, 2 ** 31 - 1, -2 ** 63, 255])).to(d)


def upper_halves(words: np.ndarray) -> np.ndarray:
    """Decode bfloat16 by its definition, the upper half of a float32."""
    return (words.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("name", DTYPES)
def test_a_checkpoint_keeps_every_bit(name, tmp_path):
    t = special(name)
    flow.save({"a": t, "nested": {"b": t[::2]}}, tmp_path / "c")
    got = flow.load(tmp_path / "c")
    assert got["a"].dtype is t.dtype and bits(got["a"]) == bits(t)
    assert bits(got["nested"]["b"].contiguous()) == bits(t[::2].contiguous())


@pytest.mark.parametrize("name", DTYPES)
def test_the_bytes_of_a_checkpoint_are_those_of_the_type(name, tmp_path):
    """Read the file without flowedu, as consecutive little-endian numbers."""
    t = special(name)
    flow.save({"a": t}, tmp_path / "c")
    raw = next(f for f in (tmp_path / "c").rglob("*") if f.is_file() and f.name == "out"
               and f.read_bytes() == bits(t))
    kind = {"bfloat16": "<u2", "bool": "?"}.get(name, np.dtype(name if name != "bfloat16"
                                                               else "u2").newbyteorder("<"))
    words = np.frombuffer(raw.read_bytes(), kind)
    want = t.float().numpy() if name == "bfloat16" else t.numpy()
    np.testing.assert_array_equal(upper_halves(words) if name == "bfloat16" else words, want)


def test_bfloat16_rounds_to_nearest_even():
    x = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    # every second one is a tie
    x[:64] = (np.arange(64, dtype=np.uint32) * 0x8000 + 0x3F800000).view(np.float32)
    words = x.view(np.uint32)
    want = ((words + 0x7FFF + (words >> 16 & 1)) >> 16 << 16).view(np.float32)
    np.testing.assert_array_equal(flow.tensor(x).bfloat16().float().numpy(), want)


# ---- weights
def foreign():
    """Return {name: function that converts an ndarray to another library's type}."""
    forms = {"ndarray": lambda a: a, "float64": lambda a: a.astype(np.float64), "list": lambda a: a.tolist(),
             "column-major": lambda a: np.array(a, order="F"),
             "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype)
             .reshape(a.shape), "buffer": lambda a: memoryview(a), "__array__": lambda a: type(
                 "Given", (), {"__array__": lambda self, dtype=None, copy=None: a})()}
    try:
        import torch
    except ImportError:
        return forms
    return forms | {"torch": torch.tensor, "torch parameter": lambda a: torch.nn.Parameter(torch.tensor(a)),
                    "torch bfloat16": lambda a: torch.tensor(a).bfloat16()}


@pytest.mark.parametrize("form", foreign())
@pytest.mark.parametrize("assign", [False, True])
def test_a_state_of_arrays_is_loaded(form, assign):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    want = {k: np.asarray(np.arange(v.numel(), dtype=np.float32).reshape(tuple(v.shape)) / 4)
            for k, v in model.state_dict().items()}
    found = model.load_state_dict({k: foreign()[form](a) for k, a in want.items()}, assign=assign)
    assert not found.missing_keys and not found.unexpected_keys
    for k, v in model.state_dict().items():
        np.testing.assert_array_equal(v.detach().float().numpy(), want[k])
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("value", [None, "weights", object(), {"a": 1}, np.array(["a"])])
def test_non_array_values_are_refused(value):
    with pytest.raises(RuntimeError, match="weight, expected flowedu.Tensor or Tensor-like"):
        nn.Linear(3, 2).load_state_dict({"weight": value, "bias": np.zeros(2)})


# initial values
INITIALISERS = {"normal_": (0.5, 2.0), "uniform_": (-1.0, 3.0), "trunc_normal_": (), "xavier_uniform_": (),
                "zero_": (),
                "xavier_normal_": (2.0,), "kaiming_uniform_": (0.1,), "kaiming_normal_": (),
                "orthogonal_": (), "fill_": (2.5,)}


@pytest.mark.parametrize("name", INITIALISERS)
def test_initializer_methods_write_in_place(name):
    """The values are those of flow.nn.init; OneFlow's models call p.normal_(std=0.02)."""
    p = nn.Parameter(flow.full((40, 60), 9.0))
    flow.manual_seed(3)
    assert getattr(p, name)(*INITIALISERS[name]) is p and p.requires_grad and p.is_leaf
    other = flow.empty(40, 60)
    flow.manual_seed(3)
    same = {"zero_": "zeros_", "fill_": "constant_"}.get(name, name)
    getattr(nn.init, same)(other, *INITIALISERS[name])
    np.testing.assert_array_equal(p.detach().numpy(), other.numpy())
    (p * 2).sum().backward()
    assert (p.grad == 2).all()


@pytest.mark.parametrize("write", [lambda p: p.add_(1), lambda p: p.mul_(2), lambda p: p.copy_(flow.ones(2)),
                                   lambda p: p.clamp_(0, 1), lambda p: p.__setitem__(0, 1.0),
                                   lambda p: p.exp_()])
def test_other_writes_into_a_parameter_need_no_grad(write):
    p = nn.Parameter(flow.ones(2))
    with pytest.raises(RuntimeError, match="leaf"):
        write(p)
    with flow.no_grad():
        write(p)


def test_a_computed_tensor_can_be_copied():
    x = flow.ones(2, requires_grad=True)
    y = x * 3
    z = copy.deepcopy({"y": y})["y"]
    assert z.tolist() == [3, 3] and z.is_leaf and not z.requires_grad and z.data_ptr() != y.data_ptr()
    assert copy.deepcopy(x).requires_grad


# optimizers without parameters, and custom optimizers
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "LAMB"])
def test_an_optimizer_without_parameters_warns_once(name):
    make = getattr(flow.optim, name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        optimizer = make([], lr=0.1)
        for _ in range(2):
            optimizer.step()
            optimizer.zero_grad()
            optimizer.load_state_dict(optimizer.state_dict())
        p = nn.Parameter(flow.ones(2))
        optimizer.add_param_group({"params": [p]})
        p.sum().backward()
        optimizer.step()
    assert [w for w in said if "empty parameter list" in str(w.message)] == said and len(said) == 1
    assert said[0].filename == __file__ and (p < 1).all()


def test_optimizer_base_class_has_the_usual_import_path():
    from flowedu.optim.optimizer import Optimizer

    class Plain(Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, dict(lr=lr))

        @flow.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad * group["lr"])

    p = nn.Parameter(flow.ones(2))
    optimizer = Plain([p])
    (p * 3).sum().backward()
    optimizer.step()
    assert p.tolist() == [-0.5, -0.5] and isinstance(flow.optim.SGD([p], lr=1), Optimizer)


def test_an_infinite_sampler_starts_immediately():
    draws = flow.utils.data.RandomSampler(range(10), replacement=True, num_samples=10 ** 10)
    seen = {i for i, _ in zip(draws, range(500))}
    assert seen == set(range(10)) and len(draws) == 10 ** 10
    assert len(list(flow.utils.data.RandomSampler(range(3), replacement=True, num_samples=70_000))) == 70_000
