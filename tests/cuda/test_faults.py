"""One example of each kind of fault that a GPU hides: the report names kernel, block, thread, and line, and
the mended kernel has no report in five orders of threads.
"""
import numpy as np
import pytest
from cuda_common import alone, faulty, in_simulator, line_with

import flowedu as flow

pytestmark = in_simulator


def f32(*shape):
    return np.ones(shape, np.float32)


# name: (source, grid, block, arguments, words of the faulty line, description of the fault). MENDED has the
# correction of each fault.
FAULTS = {
    "barrier some threads skip": ("""
__global__ void k(float* x) {
    if (threadIdx.x < 48)
        __syncthreads();
    x[threadIdx.x] = 1;
}""", 1, 64, [f32(64)], "__syncthreads", dict(kind="diverged", thread=(0, 0, 0))),
    "barrier after some have left": ("""
__global__ void k(float* x, int n) {
    if (threadIdx.x >= n) return;
    x[threadIdx.x] = 1;
    __syncthreads();
}""", 1, 64, [f32(64), 40], "__syncthreads", dict(kind="diverged", other_thread=(40, 0, 0))),
    "two barriers": ("""
__global__ void k(float* x) {
    if (threadIdx.x % 2) {
        __syncthreads();  // odd
    } else {
        x[threadIdx.x] = 1;
        __syncthreads();
    }
}""", 1, 64, [f32(64)], "// odd", dict(kind="diverged", thread=(1, 0, 0))),
    "beyond the end": ("""
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2;
    float v = x[0];
}""", 4, 32, [f32(10), f32(100), 100], "y[i] = 2", dict(kind="outside", block=(3, 0, 0), thread=(4, 0, 0),
                                                        parameter="y")),
    "before the beginning": ("""
__global__ void k(const float* x, float* y) {
    y[threadIdx.x] =
        x[(int)threadIdx.x - 1];
}""", 1, 32, [f32(32), f32(32)], "x[(int)", dict(kind="outside", thread=(0, 0, 0), parameter="x")),
    "atomic beyond the end": ("""
__global__ void k(int* bins) { atomicAdd(&bins[threadIdx.x], 1); }""", 1, 9, [np.zeros(8, np.int32)],
                              "atomicAdd", dict(kind="outside", thread=(8, 0, 0), parameter="bins")),
    "beyond a shared array": ("""
__global__ void k(float* y) {
    __shared__ float a[32];
    __shared__ float b[32];
    b[threadIdx.x] = 1;
    a[threadIdx.x + threadIdx.x / 31] = 1;
    y[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}""", 1, 32, [f32(32)], "a[threadIdx.x + threadIdx", dict(kind="outside", thread=(31, 0, 0), parameter="a")),
    "global memory never written": ("""
__global__ void k(float* y, float* z) {
    if (threadIdx.x != 7) y[threadIdx.x] = 1;
    z[threadIdx.x] = y[threadIdx.x];
}""", 1, 32, "fresh", "z[threadIdx.x]", dict(kind="unwritten", thread=(7, 0, 0), parameter="y")),
    "shared memory never written": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}""", 2, 64, [f32(128)], "= s[", dict(kind="unwritten", thread=(32, 0, 0), parameter="s")),
    "read before the barrier": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}""", 1, 64, [f32(64)], "y[thr", dict(kind="unwritten", parameter="s")),
    "race of a write": ("""
__global__ void k(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
    s[threadIdx.x] = 2;
}""", 1, 64, [f32(64)], None, dict(kind="race", parameter="s")),
    "race in global memory": ("""
__global__ void k(float* y) {
    y[blockIdx.x] += 1;
}""", 1, 64, [f32(1)], "+= 1", dict(kind="race", parameter="y")),
    "race of blocks": ("""
__global__ void k(float* y) {
    if (threadIdx.x == 0) y[0] = blockIdx.x;
}""", 2, 32, [f32(1)], "y[0]", dict(kind="race", parameter="y", block=(1, 0, 0))),
    "race with an atomic": ("""
__global__ void k(int* y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    atomicAdd(&n, 1);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = n;
}""", 1, 32, [np.zeros(1, np.int32)], "atomicAdd", dict(kind="race", parameter="n")),
    "too late for the sum": ("""
__global__ void k(int* y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    if (threadIdx.x == 0) y[0] = n;
}""", 1, 32, [np.zeros(1, np.int32)], "y[0] = n", dict(kind="race", parameter="n")),
    "warp without __syncwarp": ("""
__global__ void k(float* y) {
    __shared__ float s[32];
    s[threadIdx.x] = y[threadIdx.x];
    __syncwarp();
    if (threadIdx.x < 16) s[threadIdx.x] += s[threadIdx.x + 16];
    if (threadIdx.x < 8) s[threadIdx.x] += s[threadIdx.x + 8];  // here
    y[threadIdx.x] = s[threadIdx.x];
}""", 1, 32, [f32(32)], "// here", dict(kind="race", parameter="s")),
    "lanes missing": ("""
__global__ void k(float* y) {
    float v = y[threadIdx.x];
    if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffffu, v, 8);
    y[threadIdx.x] = v;
}""", 1, 32, [f32(32)], "__shfl", dict(kind="lanes missing", thread=(0, 0, 0), other_thread=(16, 0, 0))),
    "lane not named": ("""
__global__ void k(int* y) {
    y[threadIdx.x] = __ballot_sync(0xffffu, 1);
}""", 1, 32, [np.zeros(32, np.int32)], "__ballot", dict(kind="lanes missing", thread=(16, 0, 0))),
    "misaligned float4": ("""
__global__ void k(const float* x, float4* y) {
    y[0] = *(const float4*)(x + 1);
}""", 1, 1, [f32(8), f32(8)], "(x + 1)", dict(kind="misaligned", parameter="x")),
    "constant memory": ("""
__constant__ float c[4];
__global__ void k(float* y) { y[0] = c[0];
    ((float*)c)[1] = 2; }""", 1, 1, [f32(1)], "= 2", dict(kind="read only")),
    "assert": ("""
__global__ void k(int n) {
    assert(n > 3);
}""", 1, 1, [2], "assert", dict(kind="trapped")),
    "null pointer": ("""
__global__ void k(float* y) { y[3] = 1; }""", 1, 1, [None], "y[3]", dict(kind="outside")),
}

MENDED = {
    "barrier some threads skip": ("if (threadIdx.x < 48)\n", ""),
    "barrier after some have left": ("return;", "x += 0;"),
    "two barriers": ("threadIdx.x % 2", "threadIdx.x < 64"),
    "beyond the end": ("i <= n", "i < n"),
    "before the beginning": ("x[(int)threadIdx.x - 1]", "threadIdx.x ? x[threadIdx.x - 1] : 0"),
    "atomic beyond the end": ("bins[threadIdx.x]", "bins[threadIdx.x % 8]"),
    "beyond a shared array": ("a[threadIdx.x + threadIdx.x / 31]", "a[threadIdx.x]"),
    "global memory never written": ("if (threadIdx.x != 7) ", ""),
    "shared memory never written": ("if (threadIdx.x < 32) ", ""),
    "read before the barrier": ("y[threadIdx.x] =", "__syncthreads();\n    y[threadIdx.x] ="),
    "race of a write": ("    s[threadIdx.x] = 2", "    __syncthreads();\n    s[threadIdx.x] = 2"),
    "race in global memory": ("y[blockIdx.x] += 1", "if (threadIdx.x == 0) y[blockIdx.x] += 1"),
    "race of blocks": ("threadIdx.x == 0", "threadIdx.x + blockIdx.x == 0"),
    "race with an atomic": ("n = 0;\n", "n = 0;\n    __syncthreads();\n"),
    "too late for the sum": ("if (threadIdx.x == 0) y", "__syncthreads();\n    if (threadIdx.x == 0) y"),
    "warp without __syncwarp": ("    if (threadIdx.x < 8)", "    __syncwarp();\n    if (threadIdx.x < 8)"),
    "lanes missing": ("if (threadIdx.x < 16) v +=", "v +="),
    "lane not named": ("0xffffu", "0xffffffffu"),
    "misaligned float4": ("x + 1", "x + 4"),
    "constant memory": ("((float*)c)[1] = 2;", ""),
    "assert": ("n > 3", "n < 3"),
    "null pointer": ("y[3] = 1", "if (y) y[3] = 1"),
}


def make_arguments(arguments):
    if arguments != "fresh":
        return arguments
    from pycuda import gpuarray

    return [gpuarray.empty(32, np.float32), gpuarray.zeros(32, np.float32)]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported(name):
    source, grid, block, arguments, words, said = FAULTS[name]
    e = faulty(source, "k", grid, block, *make_arguments(arguments))
    for what, value in said.items():
        assert getattr(e, what) == value, e
    assert e.kernel == "k" and e.problem.startswith("k: thread (")
    if words is not None:
        assert line_with(source, words) in (e.line, e.other_line), e
    assert e.source == source.split("\n")[e.line - 1].strip() and f"kernel.cu:{e.line}" in str(e)


def run_mended(name):
    """Run the kernel without its fault."""
    source, grid, block, arguments, *_ = FAULTS[name]
    wrong, right = MENDED[name]
    assert wrong in source, name
    flow.cuda.kernel(source.replace(wrong, right, 1))("k", grid, block)(*make_arguments(arguments))


@pytest.mark.parametrize("seed", range(5))
def test_mended_kernels_give_no_report(seed):
    assert {*MENDED} == {*FAULTS}
    script = ("import flowedu as flow; flow.cuda.is_available(); import test_faults as t; "
              "[*map(t.run_mended, t.MENDED)]")
    alone(script, FLOWEDU_CUDA_SEED=str(seed))


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_are_detected_in_other_thread_orders(seed):
    """Another thread may be named, with the same array; a race may read memory that is not written yet."""
    script = """
import flowedu as flow
flow.cuda.is_available()
import test_faults as t
from cuda_common import faulty
for name, (source, grid, block, arguments, words, said) in t.FAULTS.items():
    e = faulty(source, "k", grid, block, *t.make_arguments(arguments))
    assert e.kind in (said["kind"], "unwritten" if said["kind"] == "race" else ""), (name, e)
    assert e.parameter == said.get("parameter", e.parameter), (name, e)
print("seen")
"""
    assert alone(script, FLOWEDU_CUDA_SEED=str(seed)) == "seen\n"


def test_freed_memory_and_host_memory_are_faults():
    import pycuda.driver as drv

    class At:
        def __init__(self, address):
            self.__cuda_array_interface__ = {"typestr": "<f4", "shape": (4,), "data": (address, False),
                                             "version": 3}

    array, host = drv.mem_alloc(64), f32(4)
    address = int(array)
    array.free()
    source = "__global__ void k(float* y) { y[1] = 1; }"
    assert "given back" in faulty(source, "k", 1, 1, At(address)).problem
    assert "no memory of the device" in faulty(source, "k", 1, 1, At(host.ctypes.data)).problem


def test_text_of_a_fault():
    """Check one complete message: problem, location, expected, got, and fix."""
    source, *rest = FAULTS["beyond the end"]
    grid, block, arguments, *_ = rest
    text = str(faulty(source, "k", grid, block, *arguments))
    assert text.startswith("k: thread (4, 0, 0) of block (3, 0, 0) writes 4 bytes beyond the end of y\n"
                           "  at:       kernel.cu:4: if (i <= n) y[i] = 2;\n  expected: y has 400 bytes\n"
                           "  got:      4 bytes at 0x") and text.endswith(", byte 400 from its beginning")
    race = str(faulty(FAULTS["race of a write"][0], "k", 1, 64, f32(64)))
    assert ("a race in shared memory" in race and "the other at kernel.cu:" in race
            and "fix:      __syncthreads()" in race)


NO_FAULTS = {
    "padding that nobody writes": (np.uint8, """
struct item { char c; double d; };
__global__ void k(const item* x, item* y) { y[threadIdx.x] = x[threadIdx.x]; }"""),
    "neighbours in one word": (np.int8, """
__global__ void k(char* x, char* y) { y[threadIdx.x] = x[threadIdx.x]; x[threadIdx.x] = 1; }"""),
    "an array of the thread's own": (np.float32, """
__global__ void k(float* x, float* y) {
    float t[8], sum = 0;
    for (int i = 0; i < 8; ++i) t[i] = x[i];
    for (int i = 0; i < 8; ++i) sum += t[(i + threadIdx.x) % 8];
    y[threadIdx.x] = sum;
}"""),
    "a variable that is zero at first": (np.int32, """
__device__ int n;
__global__ void k(int* x, int* y) { y[threadIdx.x] = x[threadIdx.x] + n; }"""),
    "a table": (np.int32, """
__device__ const int t[4] = {1, 2, 3, 4};
__global__ void k(int* x, int* y) { y[threadIdx.x] = t[x[threadIdx.x] & 3]; }"""),
    "a flag between blocks": (np.int32, """
__global__ void k(int* x, int* y) {
    if (threadIdx.x == 0) *(volatile int*)x = 1;
    if (threadIdx.x == 1) y[0] = *(volatile int*)x;
}"""),
}


@pytest.mark.parametrize("name", NO_FAULTS)
def test_valid_kernels_raise_no_fault(name):
    from pycuda import gpuarray

    dtype, source = NO_FAULTS[name]
    x, y = gpuarray.zeros(512, np.uint8), gpuarray.empty(512, np.uint8)
    flow.cuda.kernel(source)("k", 1, 32)(x.view(dtype), y.view(dtype))
