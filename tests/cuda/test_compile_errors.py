"""Compile errors of CUDA C show the user's own line, with the marker under the fault."""
import re

import pytest
from cuda_common import in_simulator

import flowedu as flow
from flowedu.cuda.sim import compiler
from flowedu.cuda.source import prepared

pytestmark = in_simulator

# A source with everything that moves lines and columns: headers, macros of one and two lines, shared and
# constant memory, and comments of two lines.
RIGHT = """#include <stdint.h>
#include <math.h>
#define N 32
#define SQUARE(x) ((x) * (x))
#define INSIDE(i, n) \\
    if (i < n)
/* a comment
   of two lines */
extern __shared__ float room[];
static __constant__ float c[N] = {};

__device__ float twice(float x) { return 2 * x; }

__global__ void k(float* __restrict__ y, int n) {
    extern __shared__ __align__(16) float more[];
    __shared__ float tile[N];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x % N] = SQUARE(y[i]) + c[0];
    room[0] = more[1];
    __syncthreads();
    INSIDE(i, n)
        y[i] = twice(tile[threadIdx.x % N]) + N;
}
"""
WRONG = "undeclared_name"
# {line: (original text, faulty text)}
PLANTS = {12: ("2 * x", f"2 * {WRONG}"), 17: ("threadIdx.x;", f"{WRONG};"), 18: ("y[i]", f"{WRONG}[i]"),
          19: ("more[1]", f"more[{WRONG}]"), 22: ("% N]) + N", f"% N]) + N + {WRONG}")}


def planted(k):
    lines = RIGHT.split("\n")
    before, after = PLANTS[k]
    assert before in lines[k - 1]
    lines[k - 1] = lines[k - 1].replace(before, after)
    return "\n".join(lines), lines[k - 1]


def parse_messages(text):
    """Return [(line number, its text, the marker line below it)] from g++'s messages about kernel.cu."""
    return [(int(n), words, marks) for n, words, marks in
            re.findall(r"^kernel\.cu:\d+:\d+: (?:fatal )?error: .*\n *(\d+) \| (.*)\n +\| (.*)$", text, re.M)]


def fails(source):
    with pytest.raises(flow.errors.KernelError) as e:
        flow.cuda.kernel(source)("k", 1, 32)
    return e.value


def test_the_source_without_faults_compiles():
    assert flow.cuda.kernel(RIGHT)("k", 1, 32)


@pytest.mark.parametrize("k", PLANTS)
def test_the_line_is_the_users_and_the_mark_is_under_the_fault(k):
    source, line = planted(k)
    e = fails(source)
    assert WRONG in e.problem and e.at == f"kernel.cu:{k}: {line.strip()}"
    number, words, marks = parse_messages(e.got)[0]
    assert (number, words) == (k, line)
    assert line[marks.index("^"):].startswith(WRONG), e
    assert e.got.startswith("kernel.cu"), e              # nothing precedes the location


def test_every_fault_of_a_source_is_shown():
    """All faults at once are reported, whether PyCUDA or flowedu compiles the source."""
    source = RIGHT
    for k, (before, after) in PLANTS.items():
        lines = source.split("\n")
        lines[k - 1] = lines[k - 1].replace(before, after.replace(WRONG, f"{WRONG}_{k}"))
        source = "\n".join(lines)
    for text in (source, prepared(source),
                 f'#line 1 "flowedu.h"\ntypedef float T;\n#line 1 "kernel.cu"\n{source}'):
        with pytest.raises(compiler.CompileError) as e:
            compiler.compiled(text)
        found = parse_messages(str(e.value))
        assert [n for n, *_ in found] == [*PLANTS], e.value
        for k, words, marks in found:
            assert (words == source.split("\n")[k - 1]
                    and words[marks.index("^"):].startswith(f"{WRONG}_{k}")), e.value


@pytest.mark.parametrize(("before", "after", "k"), [
    ("#include <math.h>", "#include <no_such_header.h>", 2), ("#define N 32", "#defin N 32", 3),
    ("((x) * (x))", f"((x) * ({WRONG}))", 4), ("float tile[N];", "float tile[N]", 17),
    ("twice(tile", "twice(tile[", 22), ("extern __shared__ float room", "extern __shared__ flaot room", 9),
    ("static __constant__ float", "static __constant__ flaot", 10), ("% N]) + N;\n}\n", "% N]) + N;\n", 22),
    ("int n) {", "int n)", 15)])
def test_faults_of_other_kinds(before, after, k):
    """Faults in directives, macro expansions, declarations, and brackets."""
    source = RIGHT.replace(before, after)
    assert source != RIGHT
    e = fails(source)
    assert e.at.startswith(f"kernel.cu:{k}: "), e
    lines = source.split("\n")
    for number, words, _ in parse_messages(e.got):
        assert words == lines[number - 1], e


def test_headers_of_c_and_cplusplus():
    """Headers that cudasim.h already includes are not included twice, and all others are included."""
    headers = ("stdint.h stddef.h math.h stdio.h stdlib.h string.h limits.h float.h cmath cstdint utility "
               "type_traits limits algorithm")
    includes = "".join(f"#include <{h}>\n" for h in headers.split())
    body = "__global__ void k(float* y) { y[0] = std::max(FLT_MAX, fabsf(-1)) + INT_MAX + (float)M_PI; }"
    assert flow.cuda.kernel(includes + body)("k", 1, 1)
    assert flow.cuda.kernel(includes + "template <class T> " + body.replace("float* y", "T* y")
                            + "\ntemplate __global__ void k<float>(float*);")("k<float>", 1, 1)


def test_a_long_text_keeps_its_beginning():
    e = fails("__global__ void k(float* y) {\n" + "".join(f"    y[{i}] = {WRONG}_{i};\n"
                                                          for i in range(100)) + "}\n")
    assert e.got.startswith("kernel.cu: In function") and "kernel.cu:2:" in e.got and len(e.got) < 2100
    assert e.got.endswith("\n...")
