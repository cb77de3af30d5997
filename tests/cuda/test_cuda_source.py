"""Parsing of CUDA sources by flow.cuda and its behavior when CUDA is off, without PyCUDA and the
simulator.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.cuda.arguments import alignment, scalar
from flowedu.cuda.signature import Parameter, Signature, signatures
from flowedu.cuda.sim.translate import translate
from flowedu.cuda.toolkit import candidates
from flowedu.errors import DeviceError, DTypeError

SOURCE = """
struct pair { float a; int b; };
__global__ void __launch_bounds__(256, 2) scale(const float* __restrict__ x, float *y, float factor, int n /* of y */) {
}
// __global__ void not_a_kernel(int n);
__global__ void numbers(unsigned char c, double d, long long l, unsigned int u, bool b, float4 v, pair p, int out[]) {
}
template <class T, int N> __global__ void f(T* x, int n) {}
template __global__ void f<float, 2>(float*, int);"""


def test_the_kernels_of_a_source():
    found = signatures(SOURCE)
    assert list(found) == ["scale", "numbers", "f<float, 2>"]
    assert str(found["scale"]) == "scale(const float* __restrict__ x, float *y, float factor, int n)"
    named = {name: [(p.type, p.name) for p in s.parameters] for name, s in found.items()}
    assert named["scale"] == [("float*", "x"), ("float*", "y"), ("float", "factor"), ("int", "n")]
    types = [t for t, _ in named["numbers"]]
    assert types == ["unsigned char", "double", "long long", "unsigned int", "bool", "float4", "pair", "int*"]
    assert named["f<float, 2>"] == [("float*", "x"), ("int", "n")]


def number(kind, x):
    p = Parameter(kind, "v", f"{kind} v")
    return scalar(Signature("k", (p,)), p, x)


def test_numbers_are_converted_to_the_parameter_type():
    assert number("int", np.int64(7)).dtype == np.int32 and number("float", 1).dtype == np.float32
    assert number("float4", (1, 2, 3, 4)).tobytes() == np.arange(1, 5, dtype=np.float32).tobytes()
    assert (alignment(Parameter("float4", "v", ""), None) == 16 and alignment(Parameter("double2", "v", ""),
                                                                              None) == 16)
    for kind, wrong in (("int", 1.5), ("int", 2**31), ("unsigned int", -1), ("float", "1"),
                        ("float4", (1, 2)), ("pair", 3)):
        with pytest.raises(DTypeError, match=f"k: v .*\\n(.|\\n)*`{kind} v`"):
            number(kind, wrong)


def test_the_translation_keeps_lines_and_handles_shared_memory():
    """The C++ compiler reports errors by line, so a translated line keeps its number."""
    text = translate("extern __shared__ float s[];\nstatic __shared__ int n;\n__constant__ const int c = 1;\n"
                     "__global__ void k(int* x) {}\n", variant="plain")
    lines = text.split("\n")
    assert (lines[1] == '#line 1 "kernel.cu"'
            and lines[2] == "float* const s = (float*)cudasim_dynamic_shared();")
    assert lines[3].split() == "__shared__ int n;".split() and lines[4] == "__constant__ int c = 1;"
    assert 'CUDASIM_KERNEL((k), "k", "int* x")' in text


def test_the_toolkit_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert candidates()[0] == tmp_path
    monkeypatch.setenv("CUDA_HOME", "")
    assert all("nvidia" in p.parts for p in candidates())


def test_functions_when_cuda_is_off(monkeypatch):
    monkeypatch.setenv("FLOWEDU_CUDA", "off")
    assert (not flow.cuda.is_available() and flow.cuda.device_count() == 0
            and flow.cuda.memory_allocated() == 0)
    if flow.cuda.machine._machine is None:              # under `make test`, no machine has been started
        with pytest.raises(DeviceError, match="make test-cuda"):
            flow.cuda.kernel("__global__ void k() {}")
    monkeypatch.setenv("FLOWEDU_CUDA", "perhaps")
    with pytest.raises(DeviceError, match="gpu, sim or off"):
        flow.cuda.is_available()
