"""Interoperability: NumPy, DLPack, copy, pickle, memory, dtypes."""
import copy
import gc
import io
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
from flowedu.errors import ArgumentError, CallError, DeviceError, DTypeError, GradientError, ShapeError

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"]


# ---- NumPy

@given(hnp.arrays(st.sampled_from([np.float32, np.float64, np.int64, np.int8, np.bool_]),
                  hnp.array_shapes(max_dims=4, max_side=5)), st.data())
def test_memory_is_shared_both_ways_with_any_strides(a, data):
    a = a.transpose(data.draw(st.permutations(range(a.ndim))))[..., :: data.draw(st.integers(1, 3))]
    t = flow.from_numpy(a)
    assert tuple(t.shape) == a.shape and t.dtype.numpy == a.dtype
    assert t.stride() == tuple(s // a.itemsize for s in a.strides)
    b = t.numpy()
    assert np.shares_memory(a, b) or not a.size
    np.testing.assert_array_equal(a, b)
    if a.size:
        t.fill_(1)
        assert (a == 1).all()
        b[...] = 0
        assert not a.any() and not t.any().item()


def test_arrays_that_cannot_be_shared():
    with pytest.raises(ValueError, match="negative"):
        flow.from_numpy(np.arange(3.0)[::-1])
    with pytest.raises(TypeError, match="expected an ndarray"):
        flow.from_numpy([1, 2])
    with pytest.raises(TypeError, match="element type"):
        flow.from_numpy(np.zeros(2, np.complex64))
    with pytest.raises(ArgumentError, match="byte order"):
        flow.from_numpy(np.zeros(2, ">f8"))
    with pytest.raises(ShapeError, match="whole elements"):
        flow.from_numpy(np.zeros(4, [("a", "f8"), ("b", "i4")])["a"])
    with pytest.raises(ShapeError, match="too many axes"):
        flow.from_numpy(np.zeros((1,) * 9))


def test_read_only_arrays_are_read_and_not_written(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4.0))
    a = np.load(tmp_path / "a.npy", mmap_mode="r")          # a write would crash the process
    t = flow.from_numpy(a)
    assert t.sum().item() == 6 and (t + 1).tolist() == [1, 2, 3, 4]
    assert not t.numpy().flags.writeable and not t[1:].numpy().flags.writeable
    for write in (lambda: t.add_(1), lambda: t[0].zero_(), lambda: t.__setitem__(0, 1),
                  lambda: t.detach().exp_()):
        with pytest.raises(ArgumentError, match="read-only"):
            write()
    c = t.clone()
    c.add_(1)


def test_mixing_with_numpy():
    t, a = flow.tensor([1.0, 2.0]), np.array([10.0, 20.0], np.float32)
    for y in (t + a, a + t, t * a, a - t):
        assert isinstance(y, flow.Tensor)
    assert (a - t).tolist() == [9, 18] and (t * np.float32(3)).tolist() == [3, 6] and (np.float32(
        3) * t).tolist() == [3, 6]
    np.testing.assert_array_equal(np.asarray(t), [1, 2])
    assert np.shares_memory(np.asarray(t), t.numpy()) and not np.shares_memory(np.array(t), t.numpy())
    assert np.asarray(t, np.float64).dtype == t.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float64, copy=False)
    w = flow.tensor([1.0], requires_grad=True)
    assert w.numpy().tolist() == [1] and (w * 2).numpy().tolist() == [2]  # as in OneFlow, no detach is needed
    assert (list(map(float, t)) == [1, 2] and np.arange(3)[flow.tensor(1)] == 1
            and range(5)[flow.tensor(3)] == 3)
    with pytest.raises(TypeError, match="index"):
        [1, 2][flow.tensor(1.0)]


# ---- DLPack

@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_with_numpy(dtype):
    a = np.arange(12).reshape(3, 4).astype(dtype)[:, ::2]
    t = flow.from_dlpack(a)
    np.testing.assert_array_equal(t.numpy(), a)
    assert t.data_ptr() == a.ctypes.data and t.stride() == (4, 2) and str(t.dtype) == f"flowedu.{dtype}"
    b = np.from_dlpack(t)
    assert np.shares_memory(a, b) and b.dtype == dtype
    old = flow.from_dlpack(t.__dlpack__())                  # the unversioned form
    assert old.data_ptr() == t.data_ptr()


def test_dlpack_lifetimes():
    gc.collect()
    live = flow.memory_stats()["live"]
    t = flow.tensor(np.arange(1000.0))
    views = [np.from_dlpack(t), flow.from_dlpack(t), flow.from_dlpack(t.__dlpack__())]
    capsule = t.__dlpack__()
    del t
    gc.collect()
    assert all(v.sum() == 499500 if isinstance(v, np.ndarray) else v.sum().item() == 499500 for v in views)
    del views, capsule
    gc.collect()
    assert flow.memory_stats()["live"] == live
    a = np.arange(10.0)
    t = flow.from_dlpack(a)
    del a
    gc.collect()
    assert t.tolist() == list(range(10))


def test_dlpack_refuses_tensors_that_cannot_be_shared():
    t = flow.tensor([1.0])
    capsule = t.__dlpack__()
    flow.from_dlpack(capsule)
    with pytest.raises(TypeError, match="used once"):
        flow.from_dlpack(capsule)
    with pytest.raises(TypeError, match="no __dlpack__"):
        flow.from_dlpack(3)
    with pytest.raises(BufferError, match="detach"):
        flow.tensor([1.0], requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="on the CPU"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="no such dtype"):
        flow.from_dlpack(np.zeros(2, np.uint16))
    assert (t.__dlpack_device__() == (1, 0)
            and flow.from_dlpack(t.__dlpack__(copy=True)).data_ptr() != t.data_ptr())
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    r = flow.from_dlpack(flow.from_numpy(frozen))
    with pytest.raises(ArgumentError, match="read-only"):
        r.add_(1)
    with pytest.raises(BufferError, match="read-only"):
        flow.from_numpy(frozen).__dlpack__()


@pytest.mark.torch
def test_dlpack_with_pytorch():
    torch = pytest.importorskip("torch")
    for dtype in [*DTYPES, "bfloat16"]:
        theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
        t = flow.from_dlpack(theirs.T)
        assert t.data_ptr() == theirs.data_ptr() and t.stride() == (1, 3)
        assert t.float().tolist() == theirs.T.float().tolist()
        back = torch.from_dlpack(t)
        assert back.data_ptr() == theirs.data_ptr() and back.dtype == theirs.dtype
        back.zero_()
        assert not t.float().numpy().any()
    with pytest.raises((BufferError, RuntimeError)):
        flow.from_dlpack(torch.ones(2, requires_grad=True))
    del theirs, back
    gc.collect()
    assert t.shape == (3, 2)


# ---- copy and pickle

@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pickles(dtype):
    t = flow.tensor([[0, 1], [2, 3], [4, 5]]).to(getattr(flow, dtype)).T
    t = t.requires_grad_() if t.dtype.is_floating_point else t
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        c = pickle.loads(pickle.dumps(t, protocol))
        assert (c.dtype is t.dtype and c.float().tolist() == t.float().tolist()
                and c.requires_grad == t.requires_grad)
        assert c.data_ptr() != t.data_ptr() and c.is_contiguous() and c.is_leaf
    for d in (flow.float32, flow.bool, flow.bfloat16, flow.char, flow.record):
        assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d
    for other in (flow.device("cpu"), t.shape):
        assert pickle.loads(pickle.dumps(other)) == other and type(copy.deepcopy(other)) is type(other)


def test_copies():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    (w * 3).sum().backward()
    d, c = copy.deepcopy(w), copy.copy(w)
    assert d.requires_grad and d.is_leaf and d.data_ptr() != w.data_ptr()
    assert d.grad.tolist() == [3, 3] and d.grad is not w.grad
    assert c.requires_grad and c.data_ptr() == w.data_ptr()
    both = copy.deepcopy([w, w])
    assert both[0] is both[1]
    leaf, slope = copy.deepcopy([w, w.grad])
    assert leaf.grad is slope
    file = io.BytesIO()
    pickle.dump({"w": w * 1}, file)
    assert pickle.loads(file.getvalue())["w"].tolist() == [1, 2]


# ---- memory

def test_memory_inspection():
    x = flow.tensor(np.arange(12.0).reshape(3, 4))
    v = x[1:, 1:]
    assert v.storage_offset() == 5 and x.storage_offset() == 0 and v.data_ptr() == x.data_ptr() + 40
    assert (x.element_size() == x.itemsize == 8 and x.nbytes == 96 and v.stride() == (4, 1)
            and v.stride(0) == 4)
    assert (x.is_contiguous() and not v.is_contiguous() and v.contiguous().is_contiguous()
            and x.contiguous() is x)
    assert x.untyped_storage() == v.untyped_storage() != x.clone().untyped_storage()
    assert x.untyped_storage().data_ptr() == x.data_ptr() and x.untyped_storage().nbytes() >= 96
    a = np.arange(6.0)
    assert flow.from_numpy(a)[2:].storage_offset() == 2


def test_data_shares_memory_without_history():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    w.data.mul_(3)
    assert w.tolist() == [3, 6] and not w.data.requires_grad and w.data.data_ptr() == w.data_ptr()
    y = (w * w).sum()
    w.data = flow.tensor([10.0])
    assert w.tolist() == [10] and w.requires_grad and w.is_leaf
    with pytest.raises(GradientError, match="modified by an inplace"):
        y.backward()
    with pytest.raises(GradientError, match="cannot require gradients"):
        w.data = flow.tensor([1])
    with pytest.raises(CallError):
        w.data = 3


def test_a_size_is_a_tuple():
    s = flow.ones(2, 3, 4).shape
    assert s == (2, 3, 4) and isinstance(s, tuple) and isinstance(s, flow.Size) and s.numel() == 24
    assert (repr(s) == "flowedu.Size([2, 3, 4])" and isinstance(s[1:], flow.Size) and s[1:] == (3, 4)
            and s[0] == 2)
    assert isinstance(s + (5,), flow.Size) and (1, *s) == (1, 2, 3, 4) and hash(s) == hash((2, 3, 4))
    assert (flow.ones(2, 3).size() == (2, 3) and flow.ones(2, 3).size(-1) == 3
            and flow.zeros(()).shape.numel() == 1)


def test_conversion_of_tensors_to_python_numbers():
    assert [f(flow.tensor(2.5)) for f in (float, int, bool)] == [2.5, 2, True]
    assert (flow.tensor([[3]]).item() == 3 and type(flow.tensor(3).item()) is int
            and flow.tensor(True).item() is True)
    for f in (float, int, lambda t: t.item()):
        with pytest.raises(RuntimeError, match="can only convert a tensor of size 1 to a Python scalar"):
            f(flow.tensor([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(flow.tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="0-d"):
        len(flow.tensor(1.0))
    with pytest.raises(TypeError, match="0-d"):
        iter(flow.tensor(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flow.tensor([1, 2]).tolist() == [1, 2]


# ---- dtypes

FLOATS = hnp.arrays(np.float32, st.integers(0, 50), elements=st.floats(width=32) | st.sampled_from(
    [1 + k / 256 for k in range(8)] + [float("nan"), float("-inf"), -0.0, 1e-45, 3.3961775e38]))  # ties, ends


@given(FLOATS)
def test_bfloat16_is_the_nearest_of_those_with_8_bits(a):
    """Search the neighbors: float32 values whose lower half is 0, ties to the even one."""
    mine = flow.from_numpy(a).bfloat16().float().numpy()
    down = (a.view(np.uint32) & 0xFFFF0000).view(np.float32)
    up = ((a.view(np.uint32) & 0xFFFF0000) + np.uint32(0x10000)).view(np.float32)
    for x, y, lo, hi in zip(a.tolist(), mine.tolist(), down, up):
        if x != x or abs(x) == float("inf"):
            assert y == x or x != x and y != y
            continue
        far = float(hi) if np.isfinite(hi) else math.copysign(2.0 ** 128, x)
        gaps = abs(x - float(lo)), abs(far - x)
        even = not int(lo.view(np.uint32)) >> 16 & 1
        want = float(lo) if gaps[0] < gaps[1] or gaps[0] == gaps[1] and even else float(hi)
        assert y == want and math.copysign(1, y) == math.copysign(1, x)
    np.testing.assert_array_equal(flow.from_numpy(a).bfloat16().double().numpy(), mine.astype(np.float64))


@given(FLOATS)
def test_bfloat16_rounds_as_pytorch_does(a):
    torch = pytest.importorskip("torch")
    mine, theirs = flow.from_numpy(a).bfloat16(), torch.from_numpy(a).bfloat16()
    np.testing.assert_array_equal(mine.float().numpy(), theirs.float().numpy())
    np.testing.assert_array_equal(mine.double().numpy(), theirs.double().numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_bfloat16_converts_to_and_from_every_dtype(dtype):
    a = np.array([0, 1, 2, 100]).astype(dtype)
    mine = flow.from_numpy(a).bfloat16()
    assert mine.tolist() == a.tolist()
    np.testing.assert_array_equal(mine.to(getattr(flow, dtype)).numpy(), a)


def test_bfloat16_tensors():
    t = flow.tensor([[1.5, 2.5], [3.0, -1.0]], dtype=flow.bfloat16)
    assert (t.dtype is flow.bfloat16 and t.element_size() == 2
            and t.T.contiguous().tolist() == [[1.5, 3], [2.5, -1]])
    assert t[1].tolist() == [3, -1] and t[0, 0].item() == 1.5 and flow.cat([t, t]).shape == (4, 2)
    t[0] = 7
    assert (t.tolist() == [[7, 7], [3, -1]] and flow.full((2,), 0.1,
                                                          dtype=flow.bfloat16).tolist() == [
                                                              0.10009765625] * 2)
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    w.bfloat16().float().sum().backward()
    assert w.grad.tolist() == [1, 1]
    assert not flow.bfloat16.is_complex and flow.bfloat16.is_floating_point and flow.bfloat16.bytes == 2


LIMITS = "bits max min eps tiny smallest_normal".split()


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "uint8", "int16", "int32",
                                  "int64"])
def test_limits_are_numpys(name):
    kind = "finfo" if "float" in name else "iinfo"
    mine, theirs = getattr(flow, kind)(getattr(flow, name)), getattr(np, kind)(name)
    for field in LIMITS[:None if kind == "finfo" else 3]:
        assert getattr(mine, field) == getattr(theirs, field), field


def test_limits_of_bfloat16():
    """8 bits of exponent like float32, and 7 of mantissa."""
    x = flow.finfo(flow.bfloat16)
    top = (2 - 2 ** -7) * 2.0 ** 127
    assert (x.bits, x.max, x.min, x.eps, x.tiny) == (16, top, -top, 2 ** -7, 2 ** -126)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16",
                                  "int32", "int64"])
def test_limits_equal_pytorchs(name):
    torch = pytest.importorskip("torch")
    kind = "finfo" if "float" in name else "iinfo"
    mine, theirs = getattr(flow, kind)(getattr(flow, name)), getattr(torch, kind)(getattr(torch, name))
    for field in "bits max min".split() + (["eps", "tiny", "smallest_normal", "resolution"] if kind == "finfo"
                                           else []):
        assert getattr(mine, field) == pytest.approx(getattr(theirs, field), rel=1e-12), field
    assert mine.dtype == name and kind in repr(mine)
    with pytest.raises(DTypeError):
        getattr(flow, "iinfo" if kind == "finfo" else "finfo")(getattr(flow, name))


def test_default_dtype():
    assert flow.get_default_dtype() is flow.float32
    flow.set_default_dtype(flow.float64)
    try:
        assert flow.tensor([1.0]).dtype is flow.float64 and flow.ones(1).dtype is flow.float64
    finally:
        flow.set_default_dtype(flow.float32)
    with pytest.raises(DTypeError, match="floating-point"):
        flow.set_default_dtype(flow.int64)
    assert repr(flow.float32) == "flowedu.float32" and flow.float is flow.float32


def test_a_device_error_is_a_runtime_error():
    assert issubclass(DeviceError, RuntimeError)
