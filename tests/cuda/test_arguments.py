"""flow.cuda.kernel checks its arguments: the source, the grid and block sizes, and each value against the
kernel's signature.
"""
import numpy as np
import pytest
from pycuda import gpuarray

import flowedu as flow
from flowedu.errors import ArgumentError, CallError, DTypeError, KernelError, NameKeyError

SOURCE = """
#define BLOCK 32
struct pair { float a; int b; };
__global__ void __launch_bounds__(256, 2) scale(const float* __restrict__ x, float *y, float factor, int n /* of y */) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
// __global__ void not_a_kernel(int n);
__global__ void shapes(int* out) {
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0)
        out[0] = blockDim.x, out[1] = blockDim.y, out[2] = blockDim.z, out[3] = gridDim.x, out[4] = gridDim.y,
        out[5] = gridDim.z;
}
__global__ void numbers(unsigned char c, double d, long long l, unsigned int u, bool b, float4 v, pair p, double* out) {
    out[0] = c, out[1] = d, out[2] = l, out[3] = u, out[4] = b, out[5] = v.w, out[6] = p.a, out[7] = p.b;
}"""


@pytest.fixture(scope="module")
def ks():
    return flow.cuda.kernel(SOURCE)


def test_arrays_are_copied_to_the_device_and_back(ks):
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    ks("scale", 4, 32)(x, y, 2, np.int32(100))
    np.testing.assert_array_equal(y, 2 * x)
    turned = np.zeros((20, 10), np.float32).T  # not contiguous: copied back to the original positions
    ks("scale", 2, 100)(x[:0:-1].copy(), turned, 1.5, 50)
    assert turned.flatten()[:50].tolist() == (1.5 * x[:49:-1]).tolist()


def test_arrays_on_the_device(ks):
    class Other:                                                           # an array of another library
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    x, y = gpuarray.to_gpu(np.ones(10, np.float32)), gpuarray.zeros(10, np.float32)
    ks("scale", 1, 32)(x, y, 3.0, 10)
    ks("scale", 1, 32)(y, Other(x), 3.0, 10)
    assert y.get().tolist() == [3.0] * 10 and x.get().tolist() == [9.0] * 10


def test_grids_and_blocks(ks):
    out = np.zeros(6, np.int32)
    ks("shapes", (2, 3, 4), (5, 6, 7))(out)
    assert out.tolist() == [5, 6, 7, 2, 3, 4]
    ks("shapes", 3, [8, 2])(out)
    assert out.tolist() == [8, 2, 1, 3, 1, 1]


def test_numbers_of_every_kind(ks):
    pair = np.array((2.5, 7), np.dtype([("a", "f4"), ("b", "i4")]))[()]
    out = np.zeros(8)
    ks("numbers", 1, 1)(255, 0.1, -2**40, np.uint32(2**32 - 1), True, (1, 2, 3, 4), pair, out)
    assert out.tolist() == [255, 0.1, -2**40, 2**32 - 1, 1, 4, 2.5, 7]


x = np.zeros(4, np.float32)
WRONG = {
    "few": (CallError, ("scale", 1, 1), (x, x, 1.0), ["3 arguments for 4 parameters",
                                                      "scale(const float* __restrict__ x"]),
    "int for an array": (DTypeError, ("scale", 1, 1), (x, 3, 1.0, 4),
                         ["y must be an array", "float *y", "float32", "the int 3"]),
    "dtype": (DTypeError, ("scale", 1, 1), (x.astype(float), x, 1.0, 4),
              ["x has the wrong dtype", "float32", "float64", "astype"]),
    "float for int": (DTypeError, ("scale", 1, 1), (x, x, 1.0, 4.0), ["n must be an integer", "the float 4.0",
                                                                      "int(n)"]),
    "array for float": (DTypeError, ("scale", 1, 1), (x, x, x, 4), ["factor must be a number",
                                                                    "array of shape (4,)"]),
    "large int": (DTypeError, ("scale", 1, 1), (x, x, 1.0, 2**31), ["n does not fit", "2147483647"]),
    "list": (DTypeError, ("scale", 1, 1), ([1.0], x, 1.0, 1), ["x must be an array", "a list of 1"]),
    "name": (NameKeyError, ("scales", 1, 1), (), ["no kernel 'scales'", "did you mean 'scale'?"]),
    "block": (ArgumentError, ("scale", 1, 2048), (), ["2048 threads", "at most 1024"]),
    "block of zero": (ArgumentError, ("scale", 1, 0), (), ["block is no shape", "block=0"]),
    "four": (ArgumentError, ("scale", (1, 1, 1, 1), 1), (), ["grid is no shape"]),
    "float grid": (ArgumentError, ("scale", 1.5, 1), (), ["grid is no shape", "1.5"]),
    "grid": (ArgumentError, ("scale", (1, 70000), 1), (), ["too large along y", "65535"]),
    "shared": (ArgumentError, ("scale", 1, 1, 10**6), (), ["1000000 bytes of shared memory"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(ks, name):
    error, launch, arguments, words = WRONG[name]
    with pytest.raises(error) as e:
        ks(*launch)(*arguments)
    assert not [w for w in words if w not in str(e.value)], e.value


def test_a_read_only_array_is_not_written(ks):
    fixed = np.zeros(4, np.float32)
    fixed.flags.writeable = False
    ks("scale", 1, 4)(fixed, x.copy(), 1.0, 4)
    with pytest.raises(DTypeError, match="y is written by the kernel"):
        ks("scale", 1, 4)(x, fixed, 1.0, 4)


def test_sources_that_do_not_compile():
    with pytest.raises(KernelError) as e:
        flow.cuda.kernel("__global__ void f(float* y) {\n    y[0] = 1;\n    y[1] = undefined_name;\n}")
    assert e.value.at == "kernel.cu:3: y[1] = undefined_name;" and "undefined_name" in e.value.problem
    with pytest.raises(ArgumentError, match="the source has no kernel"):
        flow.cuda.kernel("int f() { return 1; }")
    with pytest.raises(ArgumentError, match="not a text"):
        flow.cuda.kernel(3)


def test_options_and_macros_that_write_kernels():
    source = """
#define UNARY(name, expression) __global__ void name(float* x) { float v = x[threadIdx.x]; x[threadIdx.x] = expression; }
UNARY(twice, v + v)
#if FACTOR
__global__ void times(float* x) { x[threadIdx.x] *= FACTOR; }
#endif"""
    k, v = flow.cuda.kernel(source, options=("-DFACTOR=5",)), np.ones(4, np.float32)
    k("times", 1, 4)(v)
    assert v.tolist() == [5.0] * 4
