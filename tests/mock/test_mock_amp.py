"""Mixed precision under the mock: disabled features are accepted under all of PyTorch's names and change no
bit; enabled ones compute or are refused on construction.
"""
import importlib
import inspect
import warnings

import numpy as np
import pytest

import flowedu as flow
from flowedu import mock
from flowedu.errors import CallError, FlowError
from flowedu.tensor.devices import device

# Names in programs from 2019 to 2026: a path and the arguments before the options.
AUTOCASTS = [("autocast", ("cpu",)), ("autocast", ("cuda",)), ("amp.autocast", ("cpu",)),
             ("amp.autocast", ("cuda",)),
             ("amp.autocast_mode.autocast", ("cpu",)), ("cuda.amp.autocast", ()),
             ("cuda.amp.autocast_mode.autocast", ())]
SCALERS = [("amp.GradScaler", ()), ("amp.GradScaler", ("cpu",)), ("amp.GradScaler", ("cuda",)),
           ("cuda.amp.GradScaler", ()),
           ("amp.grad_scaler.GradScaler", ("cpu",)), ("cuda.amp.grad_scaler.GradScaler", ())]
# from PyTorch's documentation of GradScaler
SURFACE = {"scale", "unscale_", "step", "update", "get_scale", "is_enabled", "state_dict", "load_state_dict",
           *(f"{how}_{what}" for how in ("get", "set") for what in ("growth_factor", "backoff_factor",
                                                                    "growth_interval"))}


@pytest.fixture(params=mock.NAMES)
def name(request):
    with mock.enable(request.param):
        yield request.param


def import_and_compare(name, path):
    """Return the value by import, after checking that attribute access gives the same one."""
    module, _, last = f"{name}.{path}".rpartition(".")
    there = getattr(importlib.import_module(module), last)
    value = importlib.import_module(name)
    for part in path.split("."):
        value = getattr(value, part)
    assert value is there
    return there


def train_with_amp(steps=4, context=None, scaler=None):
    flow.manual_seed(3)
    model = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.ReLU(), flow.nn.Linear(4, 2))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = flow.randn(8, 3), flow.arange(8) % 2
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        if context is None:
            loss = flow.nn.functional.cross_entropy(model(x), y)
        else:
            with context() as inside:
                assert inside is None or inside
                loss = flow.nn.functional.cross_entropy(model(x), y)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
    return [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize(("path", "first"), AUTOCASTS)
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_disabled_autocast_changes_no_bit(name, path, first, dtype):
    autocast = import_and_compare(name, path)
    options = {} if dtype is None else {"dtype": getattr(flow, dtype)}

    def context():
        return autocast(*first, enabled=False, cache_enabled=False, **options)

    assert all(np.array_equal(a, b) for a, b in zip(train_with_amp(), train_with_amp(context=context)))
    assert isinstance(context(), import_and_compare(name, "autocast"))
    assert context()(train_with_amp)(1)[0].shape == (4, 3)                           # also as a decorator


@pytest.mark.parametrize(("path", "first"), SCALERS)
def test_a_disabled_scaler_changes_no_bit(name, path, first):
    make = import_and_compare(name, path)
    scaler = make(*first, init_scale=128.0, growth_interval=5, enabled=False)
    assert all(np.array_equal(a, b) for a, b in zip(train_with_amp(), train_with_amp(scaler=scaler)))
    assert {n for n in dir(scaler) if n[0] != "_"} == SURFACE
    assert scaler.get_scale() == 1.0 and not scaler.is_enabled() and scaler.state_dict() == {}
    scaler.load_state_dict({"scale": 3.0})
    for what, value in (("growth_factor", 3.0), ("backoff_factor", 0.25), ("growth_interval", 7)):
        getattr(scaler, f"set_{what}")(value)
        assert getattr(scaler, f"get_{what}")() == value
    several = [flow.ones(2), (flow.ones(1),)]
    assert scaler.scale(several) is several


@pytest.mark.parametrize(("path", "first"), [*AUTOCASTS, *SCALERS])
@pytest.mark.parametrize("gpu", [False, True])
def test_enabled_amp_computes_and_is_disabled_without_a_gpu(name, path, first, gpu, monkeypatch):
    """Without a GPU, PyTorch warns and continues, and so does the mock."""
    monkeypatch.setattr(flow.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(device, "gpus", lambda: int(gpu))
    make = import_and_compare(name, path)
    for options in ({}, {"enabled": True}):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = make(*first, **options)
        on = first == ("cpu",) or gpu
        assert on or "cuda is not available, so it is switched off" in str(told[0].message)
        assert on == (not told) and (on or told[0].filename == __file__)
        if "GradScaler" in path:
            assert made.is_enabled() is on and made.scale(flow.ones(())).item() == (2.0 ** 16 if on else 1.0)
            continue
        half = flow.bfloat16 if first == ("cpu",) else flow.float16
        with made:
            assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is (half if on else flow.float32)


def test_the_warning_is_printed_once_per_line(name, monkeypatch):
    """One warning per line, as in PyTorch, because a training loop passes it in every step."""
    monkeypatch.setattr(flow.cuda, "is_available", lambda: False)
    make = import_and_compare(name, "autocast")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            make("cuda")
        make("cuda")
    assert len(told) == 2 and told[0].lineno != told[1].lineno


@pytest.mark.parametrize(("path", "first"), [*AUTOCASTS, *SCALERS])
def test_invalid_calls_are_refused(name, path, first):
    make = import_and_compare(name, path)
    with pytest.raises(CallError, match="(?s)there is no argument 'enable'.*enabled"):
        make(*first, enable=False)
    if "device" in str(inspect.signature(make.__init__)):
        with pytest.raises(FlowError, match="no such kind of device"):
            make("gpu", enabled=False)


def test_autocast_to_float32_changes_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert import_and_compare(name, "autocast")("cpu", dtype=flow.float32)


def test_query_functions(name):
    package = importlib.import_module(name)
    assert not package.is_autocast_enabled() and not package.is_autocast_enabled("cpu")
    assert not package.is_autocast_cpu_enabled() and package.amp.is_autocast_available("cpu")
    assert not package.amp.is_autocast_available("cuda")
    with package.amp.autocast("cpu", dtype=flow.float16):
        assert package.is_autocast_enabled() and package.is_autocast_cpu_enabled()
        assert package.get_autocast_dtype("cpu") is package.get_autocast_cpu_dtype() is flow.float16
    assert package.get_autocast_dtype("cpu") is package.get_autocast_cpu_dtype() is flow.bfloat16
    assert package.get_autocast_dtype("cuda") is package.get_autocast_gpu_dtype() is flow.float16

    def f(ctx, x):
        return x

    for amp in (package.amp, package.cuda.amp):
        for wrap in (amp.custom_fwd, amp.custom_bwd):
            assert wrap(f) is f and wrap(device_type="cuda")(f) is f
        g = amp.custom_fwd(cast_inputs=flow.float64)(f)
        assert g(None, flow.ones(2)).dtype is flow.float32
        with package.amp.autocast("cpu"):
            assert g(None, flow.ones(2)).dtype is flow.float64
