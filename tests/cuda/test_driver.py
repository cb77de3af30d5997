"""The simulator under PyCUDA: typical uses of a CUDA driver by programs that are unaware of the simulator."""
import numpy as np
import pycuda.driver as drv
import pytest
from cuda_common import alone, in_simulator
from pycuda import gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.tools import DeviceMemoryPool

import flowedu as flow


def test_gpuarray_arithmetic():
    a = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
    x = gpuarray.to_gpu(a)
    np.testing.assert_allclose((x * 2 + x / 3 - 1).get(), a * 2 + a / 3 - 1, rtol=1e-5)
    np.testing.assert_allclose((x ** 2).get(), a ** 2, rtol=1e-5)
    axpy = ElementwiseKernel("float a, float *x, float *y, float *z", "z[i] = a * x[i] + y[i]", "axpy")
    z = gpuarray.empty_like(x)
    axpy(2.0, x, x, z)
    np.testing.assert_allclose(z.get(), 3 * a, rtol=1e-6)
    assert x.__cuda_array_interface__["shape"] == (30, 40)


def test_source_modules_and_their_errors():
    module = SourceModule("""
__constant__ float c[4];
__device__ int n = 7;
__global__ void f(float* y, int* m) { y[threadIdx.x] = c[threadIdx.x]; if (threadIdx.x == 0) *m = n; }""")
    address, size = module.get_global("c")
    assert size == 16
    drv.memcpy_htod(address, np.arange(4, dtype=np.float32))
    y, m = np.zeros(4, np.float32), np.zeros(1, np.int32)
    module.get_function("f")(drv.Out(y), drv.Out(m), block=(4, 1, 1), grid=(1, 1))
    assert y.tolist() == [0, 1, 2, 3] and m[0] == 7
    with pytest.raises(drv.CompileError) as e:
        SourceModule("__global__ void f(float* y) {\n  y[0] = undefined_name;\n}")
    assert "undefined_name" in str(e.value) and "kernel.cu" in str(e.value)
    with pytest.raises(drv.LogicError):
        module.get_function("g")


def test_streams_events_and_prepared_calls():
    source = "__global__ void add(float* x, float v, int n) { if (threadIdx.x < n) x[threadIdx.x] += v; }"
    f = SourceModule(source).get_function("add")
    x, stream = gpuarray.zeros(20, np.float32), drv.Stream()
    begin, end = drv.Event(), drv.Event()
    begin.record(stream)
    f.prepare("Pfi")
    f.prepared_async_call((1, 1), (32, 1, 1), stream, x.gpudata, 2.5, 20)
    end.record(stream)
    end.synchronize()
    assert end.query() and end.time_since(begin) >= 0 and x.get().tolist() == [2.5] * 20


def test_pinned_memory_pools_and_fills():
    a = drv.pagelocked_empty((100,), np.float32)
    a[:] = 3
    p = DeviceMemoryPool()
    block = p.allocate(400)
    drv.memcpy_htod_async(int(block), a, drv.Stream())
    b = np.zeros(100, np.float32)
    drv.memcpy_dtoh(b, int(block))
    assert (b == 3).all()
    drv.memset_d32(int(block), 0x40000000, 100)
    drv.memcpy_dtoh(b, int(block))
    assert (b == 2).all()
    block.free()
    p.free_held()
    free, total = drv.mem_get_info()
    held = drv.mem_alloc(1 << 20)
    assert drv.mem_get_info()[0] == free - (1 << 20) < total
    held.free()


@in_simulator
def test_wrong_copies_and_launches_are_refused():
    a = drv.mem_alloc(100)
    with pytest.raises(drv.Error, match="the array there has 100 bytes"):
        drv.memcpy_htod(a, np.zeros(101, np.uint8))
    with pytest.raises(drv.MemoryError, match="FLOWEDU_CUDA_MEMORY"):
        drv.mem_alloc(1 << 50)
    f = SourceModule("__global__ void f(int* x) { }").get_function("f")
    with pytest.raises(drv.Error, match="at most 1024"):
        f(a, block=(2000, 1, 1), grid=(1, 1))
    big = SourceModule("__global__ void f(float* x) { __shared__ float s[12800]; s[threadIdx.x] = x[0]; x[0] "
                       "= s[0]; }")
    assert big.get_function("f").shared_size_bytes == 51200
    with pytest.raises(drv.Error, match="51200 bytes of __shared__ arrays"):
        big.get_function("f")(a, block=(1, 1, 1), grid=(1, 1))
    with pytest.raises(drv.Error, match="too few bytes of arguments"):
        f(block=(1, 1, 1), grid=(1, 1))
    with pytest.raises(drv.LaunchError,
                       match=r"(?s)thread \(25, 0, 0\).*beyond the end of x.*kernel\.cu:\d+: x\["):
        f = SourceModule("__global__ void f(int* x) {\n x[threadIdx.x] = 1; }").get_function("f")
        f(a, block=(32, 1, 1), grid=(1, 1))


PROFILED = """
import io, numpy as np, flowedu as flow
flow.cuda.is_available()
import pycuda.driver as drv
from pycuda.compiler import SourceModule
m = SourceModule('''
__constant__ float c[2];
__device__ int calls;
__global__ void f(float* y) { y[threadIdx.x] = c[threadIdx.x % 2]; if (threadIdx.x == 0) ++calls; }''', options=["-DX=1"])
drv.memcpy_htod(m.get_global("c")[0], np.array([3, 4], np.float32))
f, y, n = m.get_function("f"), np.zeros(32, np.float32), np.zeros(1, np.int32)
f(drv.Out(y), block=(32, 1, 1), grid=(1, 1))
with flow.cuda.profile(io.StringIO()) as p:
    f(drv.Out(y), block=(32, 1, 1), grid=(1, 1))
f(drv.Out(y), block=(32, 1, 1), grid=(1, 1))
drv.memcpy_dtoh(n, m.get_global("calls")[0])
print(n[0], y[:2], p["f"]["global_stores"], p["f"]["sectors"])
"""


@in_simulator
def test_a_module_without_hooks_can_be_profiled():
    """The module is compiled again with hooks, and its variables are copied to the new module and back."""
    assert alone(PROFILED, FLOWEDU_CUDA_CHECK="0") == "3 [3. 4.] 2 6\n"


DEVICES = """
import numpy as np, flowedu as flow
assert flow.cuda.device_count() == 4 and flow.cuda.current_device() == 0
import pycuda.driver as drv
from pycuda import gpuarray
flow.cuda.set_device("cuda:2")
assert flow.cuda.current_device() == 2
before = flow.cuda.mem_get_info()[0]
x = gpuarray.to_gpu(np.arange(1000, dtype=np.float32))
free, total = flow.cuda.mem_get_info()
assert free == before - 4000 and flow.cuda.mem_get_info(1) == (total, total)
assert flow.cuda.memory_allocated() == 0, "of tensors, and this is none"
k = flow.cuda.kernel("__global__ void f(float* x) { x[threadIdx.x] += 1; }")
k("f", 1, 1000)(x)
flow.cuda.set_device(3)
y = gpuarray.empty(1000, np.float32)
drv.memcpy_dtod(y.gpudata, x.gpudata, 4000)
k("f", 1, 1000)(y)
assert y.get()[0] == 2
try:
    flow.cuda.set_device(4)
except RuntimeError as e:
    assert "no device cuda:4" in str(e) and "FLOWEDU_CUDA_DEVICES" in str(e)
    print("refused")
"""


@in_simulator
def test_several_devices():
    assert alone(DEVICES, FLOWEDU_CUDA_DEVICES="4") == "refused\n"


THREADS = """
import threading, numpy as np, flowedu as flow
k = flow.cuda.kernel(
    "__global__ void f(float* x, float v) { x[blockIdx.x * blockDim.x + threadIdx.x] += v; }")
def work(i):
    for _ in range(20):
        x = np.zeros(640, np.float32)
        k("f", 10, 64)(x, i)
        good.append((x == i).all())
good = []
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(all(good), len(good))
"""


def test_python_threads_launch_concurrently():
    assert alone(THREADS) == "True 80\n"


CRASHES = """
import numpy as np, flowedu as flow
from flowedu.errors import KernelError
def said(source, *arguments):
    try:
        flow.cuda.kernel(source)("f", 1, 32)(*arguments)
    except KernelError as e:
        print(e.kind, e.line)
x = np.zeros(4, np.int32)
said("__global__ void f(int* x) {\\n x[1ll << 40] = 1; }", x)
said("__global__ void f(int* x) {\\n if (threadIdx.x > 30) x[0] = x[2] / x[1]; }", x)
said("__global__ void f(int* x) { \\n volatile int y = 1; while (y); x[0] = 1; }", x)
said("__global__ void f(int* x) {\\n while (atomicAdd(x, 0) == 0); }", x)
said("__device__ int g(int n, int* x) { volatile int a[100]; a[n % 100] = n; "
     "return n < 0 ? 0 : g(n + 1, x) + a[n % 7]; }\\n"
     "__global__ void f(int* x) { x[0] = g(0, x); }", x)
said("__global__ void f(int* x) {\\n if (threadIdx.x < 16) __shfl_sync(0xffffffff, 1, 0); else __syncthreads(); }", x)
k = flow.cuda.kernel("__global__ void f(int* x) { x[threadIdx.x] = threadIdx.x; }")
k("f", 1, 4)(x)
print(*x)
"""


@in_simulator
@pytest.mark.parametrize("checked", ["0", "1"])
def test_the_process_survives(checked):
    """Without checks, the CPU traps invalid operations; nothing hangs, and the next launch is right."""
    said = alone(CRASHES, FLOWEDU_CUDA_CHECK=checked, FLOWEDU_CUDA_TIMEOUT="1").splitlines()
    assert said[0] in ("crashed 2", "outside 2") and said[1] == "divided 2"
    assert said[2] == "overdue 2" and said[3] == "overdue 2" and said[4] == "overflowed 1"
    assert said[5] == "lanes missing 2" and said[-1] == "0 1 2 3"


OFF = """
import flowedu as flow
try:
    print(flow.cuda.is_available(), flow.cuda.device_count())
    flow.cuda.kernel("__global__ void f() {}")
except RuntimeError as e:
    print("make test-cuda" in str(e) or e)
"""


def test_errors_when_cuda_is_off_or_not_installed():
    assert alone(OFF, FLOWEDU_CUDA="off") == "False 0\nTrue\n"
    said = alone(OFF, FLOWEDU_CUDA="no")
    assert "gpu, sim or off" in said and "'no'" in said


@in_simulator
def test_the_simulator_identifies_itself():
    assert flow.cuda.is_available() and "simulator" in flow.cuda.get_device_name()
    flow.cuda.synchronize()


@in_simulator
def test_the_race_in_pycudas_sum_is_detected():
    """Its last steps rely on warp-synchronous execution without __syncwarp, which no GPU since Volta
    guarantees.
    """
    with pytest.raises(drv.LaunchError, match=r"(?s)reduce_kernel.*a race in shared memory.*smem\[tid\]"):
        gpuarray.sum(gpuarray.to_gpu(np.arange(1000, dtype=np.float32)))
