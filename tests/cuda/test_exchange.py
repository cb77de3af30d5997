"""Exchange of GPU memory with other libraries in both directions, pinned memory, and layouts that copies
preserve.
"""
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.cuda import pinned
from flowedu.cuda.streams import Stream
from flowedu.errors import ArgumentError, DeviceError, DTypeError, ShapeError

gpuarray = pytest.importorskip("pycuda.gpuarray")
DTYPES = [flow.float32, flow.float64, flow.float16, flow.int32, flow.int64, flow.int8, flow.uint8, flow.bool]


def draw_tensor(shape, dtype, seed=0):
    return flow.tensor(np.random.default_rng(seed).integers(0, 2 if dtype is flow.bool else 100,
                                                            shape)).to(dtype)


@st.composite
def views(draw):
    """Draw a tensor on cuda of any dtype with any non-negative strides."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    x = draw_tensor(shape, draw(st.sampled_from(DTYPES))).cuda()
    for _ in range(draw(st.integers(0, 2))):
        if x.ndim:
            kind, axis = draw(st.integers(0, 2)), draw(st.integers(0, x.ndim - 1))
            x = x.transpose(0, axis) if kind == 0 else x[::2] if kind == 1 else x.unsqueeze(axis).expand(
                *x.shape[:axis], 2, *x.shape[axis:])[tuple([slice(None)] * axis + [1])]
    return x


class Foreign:
    """An array of another library with configurable attributes of its interface."""

    def __init__(self, keeps, **changed):
        self.keeps, self.__cuda_array_interface__ = keeps, {**keeps.__cuda_array_interface__, **changed}


def assert_shares_memory(y, x):
    assert y.device == x.device and y.dtype is x.dtype and y.shape == x.shape
    assert y.stride() == x.stride() or 0 in x.shape or 1 in x.shape
    assert y.data_ptr() == x.data_ptr() and y.is_leaf and not y.requires_grad
    np.testing.assert_array_equal(y.cpu().float().numpy(), x.cpu().float().numpy())


# ---- without a copy
@given(views(), st.booleans())
def test_dlpack_both_ways(x, versioned):
    assert_shares_memory(flow.from_dlpack(x), x)
    assert_shares_memory(flow.from_dlpack(x.__dlpack__(max_version=(1, 0) if versioned else None)), x)
    assert_shares_memory(flow.as_tensor(Foreign(x)), x)


def test_a_write_shows_on_both_sides():
    x = flow.zeros(2, 3, device="cuda")
    for y in (flow.from_dlpack(x), flow.as_tensor(Foreign(x))):
        before = x.sum().item()
        y += 1
        assert x.sum().item() == before + 6


def test_bfloat16_is_exchanged_by_dlpack():
    x = flow.arange(4, device="cuda").to(flow.bfloat16)
    assert_shares_memory(flow.from_dlpack(x), x)
    assert not hasattr(x, "__cuda_array_interface__")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
def test_arrays_of_pycuda(dtype):
    flow.ones(1, device="cuda")                              # a context is current
    theirs = gpuarray.to_gpu(np.arange(12, dtype=dtype).reshape(3, 4))
    x = flow.as_tensor(theirs)
    assert x.is_cuda and x.data_ptr() == theirs.ptr and x.tolist() == theirs.get().tolist()
    x *= 2
    assert theirs.get().tolist() == x.tolist()
    ours = flow.arange(12, device="cuda").to(x.dtype).reshape(3, 4)
    view = gpuarray.GPUArray(tuple(ours.shape), dtype, gpudata=ours.data_ptr(), base=ours)
    np.testing.assert_array_equal((view + view).get(), 2 * ours.cpu().numpy())
    assert flow.as_tensor(theirs[1:, ::2]).tolist() == theirs.get()[1:, ::2].tolist()
    assert flow.as_tensor(theirs, dtype=flow.float32).dtype is flow.float32
    assert not flow.as_tensor(theirs, device="cpu").is_cuda
    copy = flow.tensor(theirs)
    assert copy.is_cuda and copy.data_ptr() != theirs.ptr and copy.tolist() == x.tolist()


def test_importers_keep_the_memory_alive():
    for over in (flow.from_dlpack, lambda x: flow.from_dlpack(x.__dlpack__()),
                 lambda x: flow.as_tensor(Foreign(x))):
        x = flow.arange(1000, device="cuda")
        seen = weakref.ref(x)
        y = over(x)
        z = y[10:]
        del x, y
        flow.zeros(1000, dtype=flow.int64, device="cuda")    # would reuse freed memory
        assert seen() is not None and z[0].item() == 10
        del z
        gc.collect()
        assert seen() is None
    x = flow.ones(3, device="cuda")
    seen, capsule = weakref.ref(x), x.__dlpack__()
    del x
    assert seen() is not None
    del capsule                                              # the capsule was never consumed
    assert seen() is None


def test_read_only():
    x = flow.ones(3, device="cuda")
    y = flow.as_tensor(Foreign(x, data=(x.data_ptr(), True)))
    with pytest.raises(RuntimeError, match="read-only"):
        y += 1
    assert y.__cuda_array_interface__["data"] == (x.data_ptr(), True) and (y + 1).tolist() == [2, 2, 2]
    assert flow.from_dlpack(y)._read_only
    with pytest.raises(BufferError, match="read-only"):
        y.__dlpack__()


def test_streams(monkeypatch):
    waits = []
    real = Stream.synchronize
    monkeypatch.setattr(Stream, "synchronize", lambda s: waits.append(s) or real(s))
    x, s = flow.ones(3, device="cuda"), flow.cuda.Stream()
    assert x.__cuda_array_interface__["stream"] == 1
    for stream in (None, 1, -1):
        x.__dlpack__(stream=stream)
    assert not waits                                         # the default stream synchronizes implicitly
    with flow.cuda.stream(s):
        assert x.__cuda_array_interface__["stream"] == s.cuda_stream
        x.__dlpack__(stream=s.cuda_stream)
        x.__dlpack__(stream=-1)
        assert not waits
        x.__dlpack__(stream=2)
        assert waits == [s]
    for bad in (0, -2, "1", True):
        with pytest.raises(ArgumentError, match="stream"):
            x.__dlpack__(stream=bad)
    with pytest.raises(ArgumentError, match="CPU tensor has no stream"):
        flow.ones(2).__dlpack__(stream=1)

    class Told:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, stream=None, max_version=None):
            waits.append(stream)
            return x.__dlpack__(stream=stream, max_version=max_version)
    with flow.cuda.stream(s):
        flow.from_dlpack(Told())
    flow.from_dlpack(Told())
    assert waits[-2:] == [s.cuda_stream, 1]


def test_arrays_are_moved_to_the_requested_device():
    x = flow.arange(3, device="cuda")
    y = flow.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
    assert not y.is_cuda and y.tolist() == [0, 1, 2]
    z = flow.from_dlpack(x.__dlpack__(copy=True))
    assert z.is_cuda and z.data_ptr() != x.data_ptr()
    for asked in ({"dl_device": (1, 0), "copy": False}, {"dl_device": (10, 0)}):
        with pytest.raises(BufferError, match=r"on cuda:0, device \(2, 0\)"):
            x.__dlpack__(**asked)
    with pytest.raises(BufferError, match="detach"):
        flow.ones(2, device="cuda", requires_grad=True).__dlpack__()


@pytest.mark.parametrize("changed, error, words", [
    ({"typestr": ">f4"}, ArgumentError, "byte order"), ({"mask": 3}, ArgumentError, "mask"),
    ({"typestr": "<c8"}, DTypeError, "typestr"), ({"strides": (-4,)}, ShapeError, "strides"),
    ({"strides": (3,)}, ShapeError, "strides"), ({"shape": (1,) * 9, "strides": None}, ShapeError, "8 axes"),
    ({"data": (4096, False)}, DeviceError, "not memory of a GPU")])
def test_invalid_arrays_are_refused(changed, error, words):
    with pytest.raises(error, match=words):
        flow.as_tensor(Foreign(flow.ones(3, device="cuda"), **changed))


@pytest.mark.skipif(flow.cuda.device_count() < 2, reason="two GPUs, or the simulator")
def test_the_device_of_an_array_is_detected():
    x = flow.arange(3, device="cuda:1")
    for y in (flow.from_dlpack(x), flow.as_tensor(Foreign(x))):
        assert_shares_memory(y, x)
        assert (y + 1).device == x.device


# ---- pinned memory
def test_pinned_memory():
    x = flow.arange(6).reshape(2, 3)
    y = x.pin_memory()
    assert y.is_pinned() and not x.is_pinned() and y.tolist() == x.tolist() and y.pin_memory() is y
    assert y[1:].is_pinned() and not y.cuda().is_pinned() and not flow.ones(3).is_pinned()
    assert flow.ones(2, 2).T.to(flow.bfloat16).pin_memory().float().tolist() == [[1, 1], [1, 1]]
    assert (flow.empty(3, pin_memory=True).is_pinned() and flow.tensor([1, 2],
                                                                       pin_memory=True).tolist() == [1, 2])
    assert flow.zeros(0).pin_memory().is_pinned() and flow.tensor(3.0).pin_memory().item() == 3
    for there in (x.cuda(), flow.ones(4, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)):
        with pytest.raises(ArgumentError, match="only dense CPU tensors can be pinned"):
            there.pin_memory()


@pytest.mark.parametrize("pin, non_blocking, waits", [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_only_pinned_non_blocking_copies_do_not_wait(monkeypatch, pin, non_blocking, waits):
    found = []
    real = Stream.synchronize
    monkeypatch.setattr(Stream, "synchronize", lambda s: found.append(s) or real(s))
    x = flow.arange(48).reshape(12, 4).float()             # very small copies never wait
    x = x.pin_memory() if pin else x
    room = flow.zeros(12, 4, device="cuda")
    for go in (lambda t: t.to("cuda", non_blocking=non_blocking), lambda t: t.cuda(non_blocking=non_blocking),
               lambda t: room.copy_(t, non_blocking)):
        found.clear()
        y = go(x)
        assert len(found) == waits and y.tolist() == x.tolist()
    w = x.requires_grad_()
    w.to("cuda", non_blocking=non_blocking).sum().backward()
    assert w.grad.tolist() == [[1] * 4] * 12


def test_a_pinned_block_waits_for_its_copies(monkeypatch):
    """The block is not reused while a GPU may still read it, and is reused afterwards."""
    done = False
    monkeypatch.setattr(flow.cuda.Event, "query", lambda e: done)
    s = flow.cuda.Stream()
    x = flow.ones(5000).pin_memory()
    at = x.data_ptr()
    with flow.cuda.stream(s):
        y = x.to("cuda", non_blocking=True)
    del x
    assert flow.ones(5000).pin_memory().data_ptr() != at and y.sum().item() == 5000
    done = True
    assert at in [t.data_ptr() for t in [flow.ones(5000).pin_memory() for _ in range(3)]]


def test_no_more_memory_to_pin():
    with pytest.raises(flow.errors.OutOfMemoryError, match="pin"):
        pinned.pinned(1 << 50)
    assert flow.ones(2).pin_memory().is_pinned()


@pytest.mark.parametrize("workers", [0, 1])
def test_loader(workers):
    class Own:
        def pin_memory(self):
            return "pinned"

    items = [{"x": np.full(3, i, np.float32), "y": (i, "name")} for i in range(4)]
    own = flow.utils.data.DataLoader([1, 2], batch_size=2, collate_fn=lambda items: Own(), pin_memory=True)
    assert [*own] == ["pinned"]
    found = [*flow.utils.data.DataLoader(items, batch_size=2, pin_memory=True, num_workers=workers)]
    assert [b["x"][:, 0].tolist() for b in found] == [[0, 1], [2, 3]] and found[1]["y"][1] == ("name", "name")
    assert all(b["x"].is_pinned() and b["y"][0].is_pinned() for b in found)


def test_saved_on_the_cpu():
    for pin in (False, True):
        x = flow.ones(3, device="cuda", requires_grad=True)
        with flow.autograd.graph.save_on_cpu(pin_memory=pin):
            y = x.exp() * x
        y.sum().backward()
        np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * np.e, rtol=1e-6)


# ---- layouts
@given(st.permutations(range(4)), st.booleans())
def test_copies_keep_dense_layouts(order, tracked):
    """Copies keep channels_last and every other order of the axes in both directions."""
    x = flow.arange(120).float().reshape(2, 3, 4, 5).permute(*order).detach()
    x.requires_grad = tracked
    y = x.to("cuda")
    z = y.cpu()
    assert x.stride() == y.stride() == z.stride() and y._base is None
    np.testing.assert_array_equal(z.detach().numpy(), x.detach().numpy())
    if tracked:
        (z * z).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())


def test_other_layouts_become_row_major():
    x = flow.arange(24).reshape(4, 6)
    for y in (x[:, ::2], x.T[::2], x[:1].expand(4, 6)):
        z = y.cuda()
        assert z.is_contiguous() and z.tolist() == y.tolist() and not y.is_contiguous()


def test_channels_last():
    x = flow.ones(2, 3, 4, 5).to(memory_format=flow.channels_last)
    for y in (x.cuda(), x.to("cuda", memory_format=flow.channels_last), x.pin_memory().cuda(),
              x.cuda().cpu()):
        assert y.is_contiguous(memory_format=flow.channels_last) or y.is_contiguous()
    assert x.cuda().is_contiguous(memory_format=flow.channels_last)
    m = flow.nn.Conv2d(3, 2, 3).to(memory_format=flow.channels_last).cuda()
    assert m.weight.is_contiguous(memory_format=flow.channels_last)
    np.testing.assert_allclose(m(x.cuda()).detach().cpu().numpy(), m.cpu()(x).detach().numpy(), rtol=1e-4,
                               atol=1e-5)
