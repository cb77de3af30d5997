"""Compilation in lessons: modules from Cython and their scores, and kernels called through ctypes."""
import ast
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import _kernels
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError, KernelError, UnsupportedError
from flowedu.swap.build import FLAGS, ISA, annotated, build, loops
from flowedu.swap.contract import Bound, Call, Team, View, call
from flowedu.swap.cython_report import draw_lines, shade

ROOT = Path(__file__).parents[2]
SCALE = """
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef int scale(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    cdef int64_t i, lo, hi
    fe_split(fe_numel(&call.args[0]), 8, team, &lo, &hi)
    fe_wait(team)
    for i in range(lo, hi):
        y[i] = x[fe_place(&call.args[0], i)] * <float>call.reals[0] + <float>call.ints[0]
    if call.ints[0] == 13 and team.tid == team.nt // 2:
        call.detail = hi
        return FE_BAD_INDEX
    return FE_OK

address = <size_t><void *>scale
sizes = [sizeof(fe_view), sizeof(fe_team), sizeof(fe_call)]
"""


def test_a_module_runs_its_source():
    source = "def twice(double x):\n    '''Two of it.'''\n    return 2 * x\n"
    m = build(source)
    assert m.twice(3) == 6.0 and m.twice.__doc__ == "Two of it." and build(source) is m


def test_the_flags_are_those_flowedu_is_built_with():
    """setup.py is parsed, because importing it would start a build."""
    lines = {t.targets[0].id if isinstance(t.targets[0], ast.Name) else ast.unparse(t.targets[0]): t.value
             for t in ast.walk(ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")))
             if isinstance(t, ast.Assign)}
    assert tuple(next(ast.literal_eval(t.value)
                      for t in ast.walk(ast.parse((ROOT / "setup.py").read_text("utf-8")))
                      if isinstance(t, ast.Assign) and ast.unparse(t.targets[0]) == "OPT"
                      and "-O3" in ast.unparse(t.value))) == FLAGS
    v3 = ast.literal_eval(lines["ISA['v3']"])
    assert tuple(v3) == ISA["v3"] and set(ISA) == set(_kernels.ORDER)
    assert (*v3, *ast.literal_eval(lines["ISA['v4']"].right)) == ISA["v4"]


def test_errors_name_the_line():
    with pytest.raises(KernelError, match="undeclared name not builtin: nothing") as e:
        build("\ndef f():\n    return nothing\n")
    assert "kernel.pyx:3: return nothing" in str(e.value)
    with pytest.raises(KernelError, match="does not compile") as e:
        build("def f(:\n")
    assert "kernel.pyx:1" in str(e.value)
    with pytest.raises(KernelError, match="C that Cython made"):
        build('cdef extern from "nowhere.h":\n    int nothing\n\nx = nothing\n')
    with pytest.raises(ArgumentError, match="not a text"):
        build(b"")
    with pytest.raises(ArgumentError, match="no instruction set 'v5'"):
        build("", isa="v5")


def test_unsupported_instruction_sets_are_refused(monkeypatch):
    monkeypatch.setattr(_kernels, "cpu_flags", lambda: {"avx2"})
    with pytest.raises(UnsupportedError, match="lacks .*fma"):
        build("x = 1", isa="v3")
    assert build("x = 1", isa="base").x == 1


def test_a_missing_compiler_is_reported(monkeypatch):
    monkeypatch.setenv("CC", "no-such-gcc -O2")
    with pytest.raises(UnsupportedError, match="no C compiler"):
        build("y = 1")


def test_scores_are_zero_for_plain_c_only():
    lines = annotated("""
def f(x, double y, int n):
    cdef int i
    while y < 3:
        y += 1
        # nothing
    for i in range(n):
        y += i

        y = y * x
    return y
""")
    assert [line.number for line in lines] == list(range(1, 12)) and lines[1].text.startswith("def f")
    inside = loops(lines)
    assert [line.number for line in inside] == [4, 5, 7, 8, 10]
    assert [line.score > 0 for line in inside] == [False, False, False, False, True]


# calling convention
def test_the_structs_are_those_of_the_header():
    import ctypes
    assert build(SCALE).sizes == [ctypes.sizeof(s) for s in (View, Team, Call)]


@settings(max_examples=10)
@given(st.integers(0, 100), st.integers(1, 5), st.integers(-9, 9), st.integers(-9, 9))
def test_a_kernel_receives_its_arguments(n, threads, factor, add):
    x, y = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
    assert call(build(SCALE).address, [x, y], 1, ints=[add], reals=[factor], threads=threads) == 0
    np.testing.assert_array_equal(y, x * factor + add)


@pytest.mark.parametrize("look", [np.s_[:, ::-1], np.s_[::2], np.s_[1:, 3], np.s_[:0], np.s_[None, :, 2:5]])
def test_views_pass_their_strides_and_offsets(look):
    x = np.arange(48, dtype=np.float32).reshape(6, 8)[look]
    y = np.zeros(x.shape, np.float32)
    assert call(build(SCALE).address, [x, y], 1, ints=[1], reals=[2.0], threads=2) == 0
    np.testing.assert_array_equal(y, x * 2 + 1)


def test_status_and_detail_of_a_kernel_are_returned():
    bound = Bound(build(SCALE).address, [np.zeros(40, np.float32)] * 2, 1, ints=[13], reals=[1.0])
    assert bound() == 1 and bound.detail == 40
    assert call(build(SCALE).address, [np.zeros(40, np.float32)] * 2, 1, ints=[13], reals=[1.0],
                threads=3) == 1
    for address, threads in ((0, 1), (None, 1), (1.5, 1), (8, 0), (8, 65), (8, "2")):
        with pytest.raises(ArgumentError, match="cannot be called"):
            Bound(address, [], 0, threads=threads)
    with pytest.raises(ArgumentError, match="no array"):
        Bound(8, [[1.0]], 0)


@pytest.mark.parametrize("name, ints, attrs", [("softmax", [0], {"axis": 0}), ("softmax", [1], {"axis": 1}),
                                               ("cumsum", [1, 1], {"axis": 1, "backwards": True})])
def test_kernels_of_the_library_can_be_called(name, ints, attrs):
    x = np.random.default_rng(0).standard_normal((6, 80)).astype(np.float32)
    y = np.full_like(x, np.nan)
    assert call(_kernels.TABLE[name, flow.float32.code][0], [x, y], 1, ints=ints) == 0
    np.testing.assert_array_equal(y, REGISTRY[name](flow.tensor(x), **attrs).numpy())


# image
def test_lines_that_call_python_are_yellow(tmp_path):
    lines = annotated("def f(x, double y):\n    y = y * 2\n    return x + y\n")
    path = draw_lines([("f", lines), ("again", lines)], tmp_path / "a" / "f.svg")
    # the first is the background
    boxes = [e for e in ElementTree.parse(path).getroot() if e.tag.endswith("rect")][1:]
    assert [b.get("fill") for b in boxes] == [shade(line.score) for line in lines] * 2
    assert shade(0) == "#ffffff" and shade(30) < shade(3) < shade(0) and lines[1].score == 0 < lines[2].score
    assert path.read_text(encoding="utf-8").count("return\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}+\N{NO-BREAK SPACE}y") == 2
