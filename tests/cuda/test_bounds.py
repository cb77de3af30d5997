"""Array bounds are exact to the byte for memory of any origin: a missing `if (i < n)` is reported at the
first element beyond the end, and a correct kernel is never reported.
"""
import gc

import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow
from flowedu.cuda.launch import scratch
from flowedu.cuda.machine import machine

pytestmark = in_simulator

TYPES = {"float": np.float32, "double": np.float64, "char": np.int8}
SOURCE = "\n".join(f"""
extern "C" __global__ void guarded_{t}({t}* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = y[i] + 1;
}}
extern "C" __global__ void all_{t}({t}* y) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 1;
}}
extern "C" __global__ void get_{t}(const {t}* y, {t}* z, int at) {{
    z[0] = y[at];
}}
extern "C" __global__ void put_{t}({t}* y, int at) {{
    y[at] = 1;
}}""" for t in TYPES)
FEW = [1, 2, 31, 32, 33, 60, 64, 127, 128, 129, 200, 1000, 5000, 10000, 40961]


@pytest.fixture(scope="module")
def source():
    return flow.cuda.kernel(SOURCE)


class At:
    """Device memory as an array of any library."""

    def __init__(self, address, n, dtype, owner):
        self.owner = owner
        self.__cuda_array_interface__ = {"typestr": np.dtype(dtype).str, "shape": (n,), "version": 3,
                                         "data": (int(address), False)}


def bytes_of(take):
    def make(n, dtype):
        owner = take(n * np.dtype(dtype).itemsize)
        return At(owner.ctypes.data if isinstance(owner, np.ndarray) else owner, n, dtype, owner)
    return make


def makers():
    """Return {origin of the memory: function of (n, dtype)}."""
    import pycuda.driver as drv
    from pycuda import gpuarray, tools

    pool, host = tools.DeviceMemoryPool(), tools.PageLockedMemoryPool()
    machine().keep = (pool, host)                        # these must be freed before the context
    return {
        "tensor": lambda n, dtype: flow.empty(n, dtype=flow.from_numpy(np.zeros(1, dtype)).dtype,
                                              device="cuda"),
        "scratch": bytes_of(lambda n: scratch(None, n)),
        "mem_alloc": bytes_of(drv.mem_alloc),
        "gpuarray": gpuarray.empty,
        "gpuarray of a pool": lambda n, dtype: gpuarray.empty(n, dtype, allocator=pool.allocate),
        "pool": bytes_of(pool.allocate),
        "pinned": bytes_of(lambda n: drv.pagelocked_empty(n, np.uint8)),
        "pinned pool": bytes_of(lambda n: host.allocate((n,), np.uint8)),
        "managed": bytes_of(lambda n: drv.managed_empty(n, np.uint8, mem_flags=drv.mem_attach_flags.GLOBAL)),
    }


@pytest.fixture(scope="module")
def made():
    return makers()


def reported(call, *arguments):
    with pytest.raises(flow.cuda.CudaFault) as e:
        call(*arguments)
    assert e.value.kind == "outside" and e.value.parameter == "y", e.value
    return e.value


def law(source, y, n, t, blocks=(32, 64, 256)):
    """Check the reported and unreported accesses to an array of n elements, in memory that is or is not
    initialized.
    """
    width, z = np.dtype(TYPES[t]).itemsize, np.zeros(1, TYPES[t])
    for block in blocks:
        grid = -(-n // block)
        if n % block:
            e = reported(source(f"all_{t}", grid, block), y)
            assert e.block[0] * block + e.thread[0] == n, (n, block, e)
            assert f"y has {n * width} byte" in str(e) and f"byte {n * width} from its beginning" in str(e), e
        else:
            source(f"all_{t}", grid, block)(y)
        source(f"guarded_{t}", grid + 1, block)(y, n)
    for at in (-1, n):
        reported(source(f"put_{t}", 1, 1), y, at)
        reported(source(f"get_{t}", 1, 1), y, z, at)
    source(f"put_{t}", 1, 1)(y, n - 1)
    source(f"get_{t}", 1, 1)(y, z, n - 1)


def test_bounds_of_a_tensor_are_exact(source, made):
    for n in (*range(1, 201), *FEW):
        law(source, made["tensor"](n, np.float32), n, "float", [(32, 64, 96, 128, 256)[n % 5]])


@pytest.mark.parametrize("whose", ["tensor", "scratch", "mem_alloc", "gpuarray", "gpuarray of a pool", "pool",
                                   "pinned", "pinned pool", "managed"])
def test_bounds_of_memory_from_other_libraries_are_exact(whose, source, made):
    for i, n in enumerate(FEW):
        t = [*TYPES][i % 3]
        law(source, made[whose](n, TYPES[t]), n, t, [(32, 256)[i % 2]])


def test_reused_memory_has_the_size_of_the_new_owner(source, made):
    """Allocate larger and smaller arrays in turn in one block of the pool."""
    for whose in ("tensor", "pool", "scratch", "pinned pool"):
        addresses = set()
        for n in (100, 97, 128, 1, 99, 128):
            y = made[whose](n, np.float32)
            addresses.add(y.__cuda_array_interface__["data"][0])
            law(source, y, n, "float", [32])
            del y
            gc.collect()                                 # exceptions keep their stack frames alive
        assert len(addresses) < 6, whose


def test_bounds_of_a_numpy_array_are_exact(source):
    for n in FEW[:8]:
        law(source, np.zeros(n, np.float32), n, "float", [32])


def test_adjacent_arrays_are_distinguished(source, made):
    """The first element beyond one array belongs to no other array and is reported as beyond the first
    one.
    """
    for whose in ("tensor", "pool"):
        y, x = made[whose](128, np.float32), made[whose](128, np.float32)
        for a in (y, x):
            law(source, a, 128, "float", [32])


def test_a_view_is_a_part_of_its_tensor(source):
    """A kernel gets an address, so it may access all of the tensor's memory, not only the elements of the
    view.
    """
    b = flow.zeros(100, device="cuda")
    source("put_float", 1, 1)(b[:64], 64)
    source("put_float", 1, 1)(b[36:], -1)
    assert b.sum().item() == 2
    e = reported(source("put_float", 1, 1), b[36:], 64)
    assert "y has 400 bytes" in str(e) and "byte 400 from its beginning" in str(e), e
    reported(source("put_float", 1, 1), b[36:], -37)


def test_reused_memory_is_uninitialized(source):
    y = flow.ones(100, device="cuda")
    del y
    y = flow.empty(100, device="cuda")
    with pytest.raises(flow.cuda.CudaFault) as e:
        source("get_float", 1, 1)(y, np.zeros(1, np.float32), 3)
    assert e.value.kind == "unwritten" and e.value.parameter == "y"


def test_a_graph_that_reuses_memory_keeps_each_size(source):
    """Inside a graph, one block holds tensors of several sizes in every replay."""
    x = flow.ones(128, device="cuda")

    def work():
        a = x * 2
        b = a[:100] + 1
        del a
        c = b.sum() + x[:97] * 3
        del b
        return c + flow.cat([x, x]).sum()

    want, g = work(), flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):
        y = work()
    for _ in range(2):
        g.replay()
        assert y.equal(want)
        law(source, y, 97, "float", [32])


def test_bounds_of_copies_are_exact():
    drv = machine().driver
    y = flow.zeros(60, device="cuda")
    with pytest.raises(drv.LogicError, match="240 bytes"):
        drv.memset_d8(y.address, 0, 241)
    drv.memset_d8(y.address, 0, 240)
