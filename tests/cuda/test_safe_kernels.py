"""No kernel ends the process or escapes the simulator: code that nvcc refuses is refused, and every fault
raises an exception.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_common import alone, in_simulator

import flowedu as flow
from flowedu.cuda.sim.refuse import _MATH

pytestmark = in_simulator

HOST = {  # host functions: (declarations before the kernel, the call, the name in the error)
    "system": ("", 'system("true");', "system"), "abort": ("", "abort();", "abort"),
    "exit": ("", "exit(3);", "exit"),
    "_Exit": ("", "_Exit(3);", "_Exit"), "getenv": ("", 'getenv("HOME");', "getenv"),
    "rand": ("", "y[0] = rand();", "rand"),
    "fopen": ("", 'fopen("/dev/null", "w");', "fopen"), "qsort": ("", "qsort(y, 1, 4, 0);", "qsort"),
    "perror": ("", 'perror("x");', "perror"), "scanf": ("", 'scanf("%f", y);', "scanf"),
    "unistd.h": ("#include <unistd.h>", "_exit(3);", "_exit"),
    "time": ('extern "C" long time(long*);', "y[0] = time(0);", "time"),
    "signal.h": ("#include <signal.h>", "raise(9);", "raise"), "dlfcn.h": ("#include <dlfcn.h>",
                                                                           'dlsym(0, "x");', "dlsym"),
    "declared": ('extern "C" int fork();', "fork();", "fork"),
    "declared, with more arguments": ('extern "C" long syscall(long, ...);', "y[0] = syscall(39);",
                                      "syscall"),
    "a macro": ("#define LEAVE exit", "LEAVE(3);", "exit"), "a pointer": ("", 'auto f = system; f("true");',
                                                                          "system"),
    "a device function": ("__device__ void leave() { exit(3); }", "leave();", "exit"),
    "before main": ('static int early = system("true");', "y[0] = early;", "system"),
    "c++": ("#include <string>", "y[0] = std::to_string(y[0]).size();", ""), "throw": ("", "throw 1;", ""),
}


@pytest.mark.parametrize("how", HOST)
def test_functions_of_the_host_are_refused(how):
    before, call, name = HOST[how]
    with pytest.raises(flow.errors.KernelError, match=f'__host__ function\\("{name}') as e:
        flow.cuda.kernel(f"{before}\n__global__ void k(float* y) {{\n    {call}\n}}\n")("k", 1, 1)
    assert e.value.at.startswith("kernel.cu:")


@pytest.mark.parametrize("word", ["asm", "asm volatile", "__asm__", "__asm"])
@pytest.mark.parametrize("before", ["", "#include <math.h>\n", "#define A 1\n// asm\n"])
def test_assembly_is_refused(word, before):
    source = f'{before}__global__ void k(float* y) {{\n    const char* s = "asm";\n    {word}("nop");\n}}\n'
    line = source[:source.index("nop")].count("\n") + 1
    with pytest.raises(flow.errors.KernelError, match="assembly") as e:
        flow.cuda.kernel(source)("k", 1, 1)
    assert e.value.at.startswith(f"kernel.cu:{line}: ")


def test_device_functions_are_accepted():
    """All CUDA math functions of one or two arguments in both precisions, and the memory and text
    functions.
    """
    two = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder".split()
    other = ("exp10 fma frexp ilogb isinf isnan finite jn ldexp lgamma modf nan remquo roundeven scalbln "
             "scalbn sincos sinpi cospi yn").split()
    calls = [f"y[{i}] = {f}f(y[0], y[1]);\n    z[{i}] = {f}(z[0], z[1]);" for i, f in enumerate(two)]
    calls += [f"y[{i}] = {f}f(y[0]);\n    z[{i}] = {f}(z[0]);" for i, f in enumerate(_MATH)
              if f not in (*two, *other)]
    calls += ["y[0] = fmaf(y[0], y[1], y[2]) + ldexpf(y[0], 2) + scalbnf(y[0], 2);",
              "y[0] = exp10f(y[1]) + sinpif(y[0]) + cospif(y[1]);",
              "sincosf(y[0], y + 1, y + 2);",
              "int e; y[0] = frexpf(y[1], &e) + e + isnan(y[0]) + isinf(y[1]);",
              "memcpy(y, y + 8, 4 * (int)z[0]);", "memset(y, 0, 4 * (int)z[0]);",
              'printf("%f %s\\n", y[0], "asm");',
              'printf("line\\n");', "void* p = malloc(4); free(p);",
              "float* q = new float[(int)y[0]]; delete[] q;", "y[0] = abs((int)y[1]);"]
    source = "__global__ void k(float* y, double* z) {\n    " + "\n    ".join(f"{{ {c} }}"
                                                                              for c in calls) + "\n}\n"
    assert flow.cuda.kernel(source)("k", 1, 1)


FAULTS = """
import numpy as np, flowedu as flow

BODIES = {
    "a constant 0": "int a = 0; x[0] = 5 / a;", "modulo a constant 0": "int a = 0; x[0] = 5 % a;",
    "0 that is computed": "int a = n - n; x[0] = 5 / a;", "0 at run time": "x[0] = 5 / (x[0] - 1);",
    "the smallest integer by -1": "x[0] = (-2147483647 - n) / (x[0] - 2);",
    "a null pointer": "int* p = 0; *p = 5;", "a trap": "__builtin_trap();",
    "unreachable": "if (x[0]) __trap();",
    "a wild pointer": "*(int*)(unsigned long long)(0x10 * n) = 1;", "no function": "((void (*)())0)();",
    "a function's end": "x[0] = nothing(n);",
}
for name, body in BODIES.items():
    source = ("__device__ int nothing(int n) { if (n > 9) return 1; }\\n__global__ void k(int* x, int n) { "
              + body + " }")
    try:
        flow.cuda.kernel(source)("k", 1, 1)(np.ones(8, np.int32), 1)
        print(name, "ran", sep=": ")
    except flow.cuda.CudaFault as e:
        print(name, "fault", sep=": ")
y = np.zeros(4, np.int32)
flow.cuda.kernel("__global__ void k(int* x) { x[threadIdx.x] = threadIdx.x; }")("k", 1, 4)(y)
print(*y)
"""


@pytest.mark.parametrize("checked", ["0", "1"])
def test_undefined_behavior_is_a_fault_or_runs(checked):
    """None of these kernels ends the process (`alone` requires exit status 0), and the next launch is
    right.
    """
    said = alone(FAULTS, FLOWEDU_CUDA_CHECK=checked).splitlines()
    ran = {line.partition(": ")[0] for line in said[:-1] if line.endswith("ran")}
    assert len(said) == 12 and said[-1] == "0 1 2 3", said
    # A compiler may handle undefined behavior in any way, including removal.
    assert not ran - {"a function's end", "a constant 0", "modulo a constant 0", "0 that is computed",
                      "the smallest integer by -1", "a null pointer"}, said


LIMITED = """
import resource, sys
import numpy as np
import flowedu as flow
assert flow.cuda.is_available()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]),) * 2)
try:
    y = np.zeros(4, np.int32)
    flow.cuda.kernel("__global__ void k(int* x) { x[threadIdx.x] = threadIdx.x; }")("k", 1, 4)(y)
    print(*y)
except (flow.errors.FlowError, MemoryError) as e:
    print("refused:", e)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how large the process is")
@pytest.mark.parametrize("checked", ["0", "1"])
@pytest.mark.parametrize("room", [1 << 36, 1 << 33, 1 << 31, 1 << 29, 1 << 26])
def test_a_limit_of_address_space(room, checked):
    """Under a memory limit, the simulator requests less address space, and raises if that is too little; 2
    GiB are enough for a kernel.
    """
    done = subprocess.run([sys.executable, "-c", LIMITED, str(room)], capture_output=True, encoding="utf-8",
                          timeout=600,
                          env={**os.environ, "FLOWEDU_CUDA_CHECK": checked, "OPENBLAS_NUM_THREADS": "1",
                               "PYTHONPATH": str(Path(flow.__file__).parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("0 1 2 3" if room >= 1 << 31 else ("0 1 2 3",
                                                                     "refused:")), done.stdout + done.stderr


def test_the_compilers_time_is_limited(monkeypatch):
    """The limit is on CPU time; g++ needs many seconds for this sum on any machine."""
    monkeypatch.setenv("FLOWEDU_CUDA_COMPILE_SECONDS", "1")
    total = " + ".join(f"x[{i}]" for i in range(30_000))
    with pytest.raises(flow.errors.KernelError, match="more than 1 s of the processor") as e:
        flow.cuda.kernel(f"__global__ void k(float* x) {{\n    x[0] = {total};\n}}\n")("k", 1, 1)
    assert "FLOWEDU_CUDA_COMPILE_SECONDS" in str(e.value)
