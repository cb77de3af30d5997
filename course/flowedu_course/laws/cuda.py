"""Laws of chapter 8 for the GPU: CUDA C kernels, launched in the simulator under random orders of threads.

The simulator detects accesses outside arrays, races, and barriers that some threads skip, and counts memory
traffic. A case is (sizes, order): the sizes of the inputs, as a step of the ladders takes them, and an order
of threads.
"""
from __future__ import annotations

import functools
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flowedu.cuda import kernel, profile
from flowedu.cuda.faults import CudaFault
from flowedu.cuda.kernels import Kernels
from flowedu.cuda.lessons import LADDERS, Ladder, Step
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import own_file
from flowedu_course import laws, rules
from flowedu_course.laws import CASE, SMALLEST, Law, holds
from flowedu_course.laws.ladders import OWN

OUTSIDE = ("outside", "misaligned", "read only", "crashed")
UNORDERED = ("race", "unwritten", "diverged", "lanes missing")


def rung(name: str) -> tuple[Ladder, Step]:
    """Return the ladder that has the kernel as a step, and the step."""
    return next((ladder, s) for ladder in (*LADDERS.values(), *OWN) for s in ladder.steps
                if s.file == f"lessons/{name}.cu")


@contextmanager
def stepped(name: str, file: Path) -> Iterator[Step]:
    """Make a step of the library's ladders run the kernel of this file inside the context."""
    step = rung(name)[1]
    before = step.file
    step.file = str(file.resolve())
    step.__dict__.pop("kernels", None)                               # cached property
    try:
        yield step
    finally:
        step.file = before
        step.__dict__.pop("kernels", None)


def compiled(name: str, text: str) -> Kernels:
    kernels = kernel(own_file(text))
    # Raises NameKeyError if the kernel is missing.
    kernels(name, 1, 1)
    return kernels


# ---- running
class Ran(NamedTuple):
    output: np.ndarray | None
    counts: dict[str, int]
    fault: Exception | None


class Launched:
    """A student's kernel that replaces a step of a ladder.

    Raises KernelError if the source does not compile, and NameKeyError if it has no such kernel.
    """

    def __init__(self, name: str, text: str):
        self.name, self.text, self.kernels = name, text, compiled(name, text)
        self.ladder, step = rung(name)
        self.step = Step(step.name, name, step.why, step._launch)
        self.step.__dict__["kernels"] = self.kernels

    @functools.cache                                                 # noqa: B019  (several laws share one run)
    def run(self, sizes: tuple[int, ...], order: int = 0) -> Ran:
        if laws.NOTE:
            laws.NOTE.write_text(self.words((sizes, order)), encoding="utf-8")
        ran = self.ran(self.ladder.inputs(*sizes), order)
        if getattr(ran.fault, "kind", "") == "overdue":              # other cases would time out, too
            raise ran.fault
        return ran

    def ran(self, arrays: Sequence[np.ndarray], order: int = 0) -> Ran:
        """Run the kernel on arrays. Faults are returned; errors before the launch propagate."""
        library = machine().library
        if library is None:
            return Ran(self.step(*arrays), {}, None)
        library.cudasim_seed(order)
        try:
            with profile(io.StringIO()) as p:
                y = self.step(*arrays)
        except CudaFault as fault:
            return Ran(None, {}, fault)
        finally:
            library.cudasim_seed(0)
        return Ran(y, next(iter(p.kernels.values()), {}), None)

    def words(self, case: tuple) -> str:
        sizes, order = case
        names = self.ladder.make.__code__.co_varnames[1:]
        return ", ".join(f"{name} {n}" for name, n in zip(names, sizes)) + (f", order of threads {order}"
                                                                            if order else "")


# ---- report of a fault
def report_fault(fault: CudaFault, text: str) -> list[str]:
    """Return the lines of a report: the thread and its access, the source lines, and a fix."""
    said = fault.problem.partition(": ")[2] or fault.problem
    m = re.match(r"thread \((.*?)\) of block \((.*?)\) (.*)", said)
    if m:
        said = f"block ({_short(m[2])}), thread ({_short(m[1])}) {_shorter(m[3])}"
    element = _element(fault, text)
    lines = textwrap.wrap(said, 97, initial_indent="  ", subsequent_indent="  ")[:2]
    lines += [f"  it is   {element}"] if element else []
    source = text.splitlines()
    for number, words_ in ((fault.line, ""), (fault.other_line, "   (the other)")):
        if number and 0 < number <= len(source):
            lines.append(f"  line {number:<5} {source[number - 1].strip()[:70]}{words_}")
    fix = fault.fix
    if fault.kind == "race" and "shared" in str(fault):
        fix = "put a __syncthreads() between the two"
    elif fault.kind == "unwritten":
        fix = "a barrier is missing, or this element was never loaded"
    return [*lines, *([f"  {fix[:97]}"] if fix else [])]


def _short(thread: str) -> str:
    """Drop the last coordinate if it is 0: "3, 0, 0" becomes "3, 0"."""
    return thread.removesuffix(", 0")


def _shorter(text: str) -> str:
    return re.sub(r"\((\d+, \d+), 0\)", r"(\1)", text).replace(" of the same block", "").replace(
        ", and nothing orders them", "")


def _element(fault: CudaFault, text: str) -> str:
    """Return the element at a fault, such as As[0][1], or "" if the source has no constant sizes."""
    at = re.match(r"byte (\d+) of (\w+)", str(fault.got))
    for name, value in re.findall(r"(?:enum\s*\{\s*|#\s*define\s+)(\w+)[\s=]+(\d+)", text):
        text = re.sub(rf"\b{name}\b", value, text)
    sizes = at and re.search(rf"\b{at[2]}((?:\[[\d\s+*]+\])+)\s*[,;]", text)
    if not sizes:
        return ""
    index, out = int(at[1]) // 4, ""
    for size in reversed(re.findall(r"\[([\d\s+*]+)\]", sizes[1])):
        n = rules.evaluate(size, {})               # a size may be a sum, such as 32 + 1
        index, out = index // n, f"[{index % n}]{out}"
    return at[2] + out


# ---- laws
def _describe_case(case: tuple) -> str:
    sizes, order = case
    return f"sizes {', '.join(map(str, sizes))}" + f", order of threads {order}" * bool(order)


def _laws(name: str, sizes: Callable, edges: Sequence[tuple], near: float = 1e-4,
          note: Callable = lambda sizes: "") -> tuple[Law, Law, Law]:
    """Return the three laws of a kernel. The sizes `edges` come first, the measured sizes last."""
    def draw(rng, size):
        return sizes(rng, size), rng.choice((0, 0, 1, 2, 3))

    def smaller(case):
        s, order = case
        if order:
            yield s, 0
        for i, n in enumerate(s):
            for m in (n // 2, n - 1):
                if 0 < m < n:
                    yield (*s[:i], m, *s[i + 1:]), order

    def faults(kinds):
        def judge(case, yours):
            fault = yours.run(*case).fault
            if fault is None or fault.kind not in kinds:
                return None
            return [SMALLEST + yours.words(case), *report_fault(fault, yours.text)]
        return judge

    def values(case, yours):
        ran = yours.run(*case)
        if ran.fault:
            return [SMALLEST + yours.words(case), *report_fault(ran.fault, yours.text)]
        want = np.asarray(yours.ladder.answer(*yours.ladder.inputs(*case[0])))
        wrong = ~np.isclose(ran.output, want, rtol=near, atol=near)
        if not wrong.any():
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        lines = [SMALLEST + yours.words(case), f"  yours           y{list(at)} = {ran.output[at]:.6g}",
                 f"  should be       {want[at]:.6g}"]
        return [*lines, *([f"  {note(case[0])}"] if note(case[0]) else [])]

    tried = {"cases": 14, "told": _describe_case, "edges": [(s, 0) for s in edges],
             "large": [(rung(name)[0].size, 0)]}
    return (Law("no access outside its arrays", draw, faults(OUTSIDE), smaller, **tried),
            Law("no race; all threads reach each barrier", draw, faults(UNORDERED), smaller, **tried),
            Law("values equal NumPy's", draw, values, smaller, **tried))


def _reads(most: Callable, hint: str) -> Law:
    """Return a judge of memory traffic at the ladder's sizes; most(*sizes) elements are allowed."""
    def judge(case, yours):
        counts = yours.run(case).counts
        if (not counts or counts["global_bytes"] <= 4 * most(*case)
            and counts["global_loads"] <= most(*case) / 8):
            return None
        if counts["global_bytes"] <= 4 * most(*case):
            return [CASE + yours.words((case, 0)),
                    f"  yours           executes {counts['global_loads']:,} warp loads for "
                    f"{most(*case):,.0f} numbers",
                    "  a load by 32 threads of a warp counts once: let all threads load"]
        return [CASE + yours.words((case, 0)),
                f"  yours           reads and writes {counts['global_bytes'] // 4:,} numbers",
                f"  at most         {most(*case):,.0f}", f"  {hint}"]
    return judge


def _counted(name: str, hint: str, most: Callable) -> Law:
    size = rung(name)[0].size
    return Law("no number is loaded twice by a block", lambda rng, size_: size, _reads(most, hint), cases=1,
               told=lambda case: _describe_case((case, 0)))


def _measures(yours: Launched, seed: int = 0) -> list[dict]:
    """Return the measurements that the stars are awarded for."""
    size = yours.ladder.size
    c, arrays = yours.run(size).counts, yours.ladder.inputs(*size)
    if not c:
        return [{"right": True}]
    out = np.asarray(yours.ladder.answer(*arrays)).size
    accesses = c["global_loads"] + c["global_stores"]
    return [{"right": True,
             "reads_of_an_element": round((c["global_bytes"] / 4 - out) / sum(a.size for a in arrays), 2),
             "sectors_an_access": round(c["sectors"] / accesses, 2), "conflicts": c["conflicts"],
             "barriers": round(c["barriers"] / max(1, _blocks(yours)), 2)}]


def _blocks(yours: Launched) -> int:
    return yours.ladder.size[0]


def _near(rng, size, *sides):
    """Draw a size that equals one of `sides` or differs from it by 1."""
    return max(1, rng.choice(sides) + rng.choice((-1, 0, 1)) if size > 1 else rng.randint(1, 5))


add_inside, add_race, add_values = _laws("add", lambda rng, size: (_near(rng, size, 64, 128, 300),),
                                         [(1,), (63,), (64,), (65,), (128,)], note=lambda sizes:
                                         "blockIdx.x * blockDim.x + threadIdx.x is the number of a thread")
row_sum_inside, row_sum_race, row_sum_values = _laws(
    "row_sum", lambda rng, size: (rng.randint(1, 3), _near(rng, size, 64, 32, 200)),
    [(1, 1), (2, 32), (2, 33), (1, 64), (2, 65), (1, 129)])
row_sum_reads = _counted("row_sum", "load each element once: the threads of a block share a row",
                         lambda m, n: m * n + m)
row_sum_stars = _measures
matmul_shared_inside, matmul_shared_race, matmul_shared_values = _laws(
    "matmul_shared", lambda rng, size: tuple(_near(rng, size, 16, 17, 32) for _ in range(3)),
    [(1, 1, 1), (16, 16, 16), (16, 16, 17), (17, 1, 16), (1, 17, 33), (32, 33, 48)],
    note=lambda sizes: "elements of a tile outside a and b must be 0" if any(n % 16 for n in sizes) else "")
matmul_shared_reads = _counted("matmul_shared",
                               "load tiles of 16 rows of a and 16 columns of b once, with all threads",
                               lambda m, n, k: 2 * m * n * k / 16 + 3 * m * n)
matmul_shared_stars = _measures
softmax_warp_inside, softmax_warp_race, softmax_warp_values = _laws(
    "softmax_warp", lambda rng, size: (rng.choice((1, 2, 4, 5)), _near(rng, size, 32, 64, 200)),
    [(1, 1), (1, 5), (4, 32), (5, 33), (2, 1023), (1, 1024)], 1e-5,
    lambda sizes: "lanes beyond the end of a row have no element" if sizes[1] % 32 else "")
transpose_padded_inside, transpose_padded_race, transpose_padded_values = _laws(
    "transpose_padded", lambda rng, size: (_near(rng, size, 32, 33, 64), _near(rng, size, 32, 40, 64)),
    [(1, 1), (1, 33), (32, 32), (33, 32), (31, 65), (64, 64)], 0,
    lambda sizes: "y has `rows` columns: y[c * rows + r]")
softmax_warp_stars = transpose_padded_stars = _measures

# ---- hunts
product_inside, product_race, product_values = _laws(
    "product", lambda rng, size: (_near(rng, size, 64, 3), _near(rng, size, 64, 130)),
    [(1, 1), (2, 64), (65, 63)])
difference_inside, difference_race, difference_values = _laws(
    "difference", lambda rng, size: (_near(rng, size, 16, 5), 1 + _near(rng, size, 16, 33)),
    [(1, 2), (16, 17), (17, 16)])
affine_inside, affine_race, affine_values = _laws(
    "affine", lambda rng, size: (_near(rng, size, 16, 33), _near(rng, size, 16, 33)),
    [(1, 1), (16, 16), (17, 33)])


@holds("neighbours read neighbours", lambda rng, size: rung("affine")[0].size, cases=1, told=lambda case: "")
def affine_sectors(case: tuple, yours: Launched) -> list[str] | None:
    each = _measures(yours)[0].get("sectors_an_access", 0)
    if each <= 5:
        return None
    return [CASE + yours.words((case, 0)), f"  yours           {each:g} sectors for each access of a warp",
            "  at most         5"]


def _describe_row(case: int) -> str:
    return f"a row of {case} numbers from 0 to 1000"


@holds("large numbers do not overflow", lambda rng, size: 100, cases=1, told=_describe_row, label="case")
def softmax_warp_large(case: int, yours: Launched) -> list[str] | None:
    x = np.linspace(0, 1000, case, dtype=np.float32)[None]
    ran, want = yours.ran([x]), yours.ladder.answer(x)
    if ran.fault:
        return [*report_fault(ran.fault, yours.text)]
    got = ran.output
    if np.allclose(got, want, atol=1e-6):
        return None
    return [f"  yours           ends in {got[0, -1]:.6g}",
            f"  should be       {want[0, -1]:.6g}", "  exp(1000) is inf: subtract the largest of the "
            "row first"]
