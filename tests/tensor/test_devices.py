"""Devices, and the conversions between dtypes and devices."""
import pytest

import flowedu as flow
from flowedu.errors import CallError, DeviceError


def test_devices_are_values():
    d = flow.device("cpu")
    assert repr(d) == "device(type='cpu', index=0)" and str(d) == "cpu:0" and (d.type, d.index) == ("cpu", 0)
    assert (d == flow.device("cpu", 0) == flow.device("cpu:0") == flow.device(d)
            and len({d, flow.device("cpu:0")}) == 1)
    assert d != flow.device("cpu", 1) and d != "cpu" and str(flow.device("cuda:3")) == "cuda:3"
    assert flow.ones(2).device == d and flow.zeros(2, device="cpu").device == d


@pytest.mark.parametrize("bad", ["gpu", "", "CPU", "cpu:x", "cpu:-1", "cpu:"])
def test_names_that_are_no_device(bad):
    with pytest.raises(RuntimeError):
        flow.device(bad)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda device type at start of device string"):
        flow.device("tpu:1")


def test_odd_arguments_are_refused():
    for args in [("cpu:1", 1), ("cpu", -1), ("cpu", "1"), (3,), (flow.device("cpu"), 0)]:
        with pytest.raises((DeviceError, CallError)):
            flow.device(*args)


def test_every_form_of_to():
    t = flow.tensor([1.5, 2.5])
    other = flow.tensor([1], dtype=flow.int32)
    same = [t.to("cpu"), t.to(flow.device("cpu")), t.to(flow.float32), t.to("cpu", flow.float32), t.to(t),
            t.cpu(),
            t.to(device="cpu"), t.to(dtype=flow.float32), t.to("cpu", non_blocking=True), t.to(None),
            t.float(), t.to("cpu:0"), t.to(flow.float32, True), t.pin_memory()]
    assert all(s is t for s in same)
    ints = [t.to(flow.int32), t.to(other), t.to("cpu", flow.int32), t.to(device="cpu", dtype=flow.int32),
            t.to(other=other)]
    assert all(i.tolist() == [1, 2] and i.dtype is flow.int32 for i in ints)
    c = t.to("cpu", copy=True)
    assert c is not t and c.data_ptr() != t.data_ptr() and c.tolist() == t.tolist()
    assert t.to(flow.float32, False, True) is not t
    for bad in [("cpu", flow.int32, False, False, 3), ([1],), (flow.int32, "yes")]:
        with pytest.raises(CallError, match="to: these arguments"):
            t.to(*bad)


def test_to_passes_gradients():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    (w.to(flow.float64) * 3).to("cpu", flow.float32, copy=True).sum().backward()
    assert w.grad.tolist() == [3, 3] and w.grad.dtype is flow.float32


@pytest.mark.parametrize("go", [lambda t: t.cuda(), lambda t: t.to("cuda"), lambda t: t.to("cuda:1"),
                                lambda t: t.cuda(0),
                                lambda t: t.to(flow.device("cuda")), lambda t: flow.ones(2, device="cuda"),
                                lambda t: t.to(0)])
def test_errors_explain_that_no_gpu_exists(go):
    with pytest.raises(RuntimeError, match="no GPU") as e:
        go(flow.ones(2))
    assert "flow.cuda.is_available()" in str(e.value) and '"cpu"' in str(e.value)


def test_the_cpu_is_one_device():
    with pytest.raises(RuntimeError, match="one device"):
        flow.ones(1).to("cpu:1")


def test_cuda_queries_without_a_gpu():
    assert flow.cuda.is_available() is False and flow.cuda.device_count() == 0
    flow.cuda.synchronize()
    flow.cuda.manual_seed_all(3)
    flow.cuda.manual_seed(3)
    flow.cuda.empty_cache()
    for question in (flow.cuda.current_device, flow.cuda.get_device_name, lambda: flow.cuda.set_device(0)):
        with pytest.raises(RuntimeError, match="no GPU"):
            question()


def test_startup_queries_of_programs_need_no_gpu():
    """Such as `"bfloat16" if cuda.is_bf16_supported() else ...`, and checkpoints with the state of every
    generator.
    """
    assert not flow.cuda.is_bf16_supported() and not flow.cuda.is_bf16_supported(including_emulation=False)
    assert flow.cuda.get_rng_state_all() == []
    flow.manual_seed(7)
    assert flow.cuda.initial_seed() == flow.initial_seed() == 7
    state = flow.cuda.get_rng_state()
    flow.cuda.set_rng_state_all(flow.cuda.get_rng_state_all())
    a = flow.rand(3)
    flow.cuda.set_rng_state(state)
    assert flow.equal(a, flow.rand(3))


def test_names_of_types():
    names = {flow.float32: "Float", flow.float64: "Double", flow.float16: "Half", flow.bfloat16: "BFloat16",
             flow.int16: "Short", flow.int32: "Int", flow.int64: "Long", flow.int8: "Char",
             flow.uint8: "Byte", flow.bool: "Bool"}
    for dtype, name in names.items():
        t = flow.ones(2).to(dtype)
        assert t.type() == f"flowedu.{name}Tensor" and flow.ones(2).type(t.type()).dtype is dtype
        assert flow.ones(2).type(dtype).dtype is dtype
        assert dtype.is_signed == (dtype not in (flow.uint8, flow.bool)) and dtype.is_complex is False
        assert dtype.is_floating_point == t.is_floating_point() == (name in ("Float", "Double", "Half",
                                                                             "BFloat16"))
    t = flow.ones(2)
    assert (not t.is_cuda and t.is_local and not t.is_global and t.is_eager and not t.is_lazy
            and t.get_device() == -1)
    assert t.is_floating_point() and not t.is_complex() and not t.is_pinned()
