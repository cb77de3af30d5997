"""Kernel exercises: small Cython or CUDA C files, compiled separately and entered in the library's tables.

    python -m flowedu_course.kernels HOME 8.3 work/8.3_running_sums.pyx RESULT

This command compiles a file, caches the result (build.py, cuda/source.py), and writes a verdict with the
compiler's errors to RESULT.
"""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flowedu.errors import DeviceError, FlowError, KernelError, UnsupportedError
from flowedu_course import course, rules
from flowedu_course.handout import NOTES, untouched
from flowedu_course.laws import Verdict

SECONDS = 30.0                                     # for the compilers, and for a kernel in the simulator
BROUGHT = re.compile(r"^\s*(?:(?:#|%:)\s*(?:include|import|embed)\w*|include\b|cdef\s+extern\s+from\b)[ "
                     r"\t]*(.*)$", re.M)
HEADER = re.compile(r"""(["'])\w+\.h\1|<\w+(\.h)?>|\*""")
OWN: dict[tuple[str, int], tuple[int, int]] = {}       # the library's rows of replaced kernels


def answer(hole) -> str:
    """Return the text of the file with the library's kernel."""
    return hole.answer_file.read_text(encoding="utf-8")


def answer_lines(hole) -> list[str]:
    """Return the lines of the functions in that file that are the answer."""
    lines = answer(hole).splitlines()
    shown_lines: list[str] = []
    for part in answer_ranges(hole, lines):
        shown_lines += ["", *lines[part.start:part.stop]]
    return shown_lines[1:]


def answer_ranges(hole, lines: list[str]) -> list[range]:
    """Return the indices of the lines of each function that is part of the answer."""
    if not hole.parts:
        return [range(len(lines))]
    ranges = []
    for name in hole.parts:
        at = next(i for i, t in enumerate(lines) if re.match(rf"(cdef|#define) .*\b{name}\(", t))
        end = next((i for i in range(at + 1, len(lines)) if re.match(r"\S", lines[i])
                    and not lines[i - 1].endswith("\\")),
                   len(lines))
        while not lines[end - 1].strip():
            end -= 1
        ranges.append(range(at, end))
    return ranges


# ---- compiling
def environment(hole) -> dict[str, str]:
    """Return the environment variables to compile or run a kernel.

    CUDA C runs in the simulator with all checks, or on a GPU if TEST=gpu.
    """
    if hole.language != "cuda":
        return {}
    return {"FLOWEDU_CUDA": "gpu" if os.environ.get("TEST") == "gpu" else "sim", "FLOWEDU_CUDA_CHECK": "1",
            "FLOWEDU_CUDA_MEMORY": "64", "FLOWEDU_CUDA_DEVICES": "1", "FLOWEDU_CUDA_TIMEOUT": "10"}


def missing(hole) -> str:
    """Return the tool that is missing on this machine and how to install it, or ""."""
    if not hole.is_compiled or hole.language == "cuda" and os.environ.get("TEST") == "gpu":
        return ""
    if hole.language != "cuda":
        compiler = (os.environ.get("CC") or "cc").split()[0]
        if shutil.which(compiler) is None:
            return f"there is no C compiler {compiler}: install gcc, or set CC=/path/to/gcc"
        return "" if importlib.util.find_spec("Cython") else "Cython is not installed: pip install cython"
    from flowedu.cuda.sim.build import library

    if importlib.util.find_spec("pycuda") is None:
        return "PyCUDA is not installed: run tools/setup_cuda.py"
    return "" if library().exists() else "the GPU simulator is not set up: run tools/setup_cuda.py"


def set_up(hole, home: Path) -> str:
    """Set up missing tools once, and return what is still missing, or ""."""
    tool = home / "tools" / "setup_cuda.py"
    if hole.language == "cuda" and missing(hole) and tool.exists():
        print(f"{hole.short}: setting up the GPU simulator; this takes a few minutes, once", flush=True)
        subprocess.run([sys.executable, str(tool)])
        importlib.invalidate_caches()
    return missing(hole)


def load(hole, file: Path, apart: bool = False) -> Any:
    """Compile a work file and return the kernel for the laws. apart: run it in another process.

    Raises NotImplementedError if the file is the unchanged stub, and KernelError if it does not compile, has
    no such kernel, or takes it from another file.
    """
    text = file.read_text(encoding="utf-8")
    if hole.stub and untouched(hole, text):
        raise NotImplementedError(f"{hole.id}: your turn")
    alone(hole, text)
    if hole.language == "cuda":
        from flowedu_course.simulated import Simulated
        return Simulated(hole.functions[0], text)
    if apart:
        from flowedu_course.apart import Apart
        return Apart(hole.functions[0], wrapped(hole, text))
    from flowedu_course.laws.called import Compiled
    return Compiled(hole.functions[0], wrapped(hole, text))


def alone(hole, text: str) -> None:
    """Raise KernelError for includes other than headers without a folder, and for text that is not CUDA C."""
    if hole.language == "cuda":
        from flowedu_course.simulated import refuse_words
        refuse_words(text)
    spliced = re.sub(r"\\\r?\n", "", text)
    for text in (spliced, NOTES[".cu"].sub(" ", spliced)):
        for m in BROUGHT.finditer(text):
            if not HEADER.match(m[1]):
                raise KernelError(f"{' '.join(m[0].split())}: an answer may include only headers, named "
                                  f"without a folder", at="", got="")


def wrapped(hole, text: str) -> str:
    """Insert a line of C into the loop in the .pyx file next to the stub; return other kernels unchanged."""
    if hole.language != "formula":
        return text
    return (hole.folder / hole.stub).with_suffix(".pyx").read_text("utf-8").replace("FORMULAS",
                                                                                    text.replace('"""', ""))


def describe_error(error: BaseException, text: str) -> list[str]:
    """Return the compiler's message and the line, or another error."""
    if not isinstance(error, FlowError):
        return [f"  {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"]
    in_c = re.search(r"kernel\.h:(\d+):\d+: error: (.*)", str(error.got))
    if in_c:
        line = dict(enumerate(text.splitlines(), 1)).get(int(in_c[1]), "")
        return [f"  {in_c[2][:96]}", f"  line {in_c[1]:<6} {line.strip()[:80]}"]
    lines = textwrap.wrap(error.problem, 96, initial_indent="  ", subsequent_indent="  ")[:3]
    at = re.match(r"kernel\.\w+:(\d+):", str(error.at or ""))
    if at and 0 < int(at[1]) <= len(text.splitlines()):
        lines.append(f"  line {at[1]:<6} {text.splitlines()[int(at[1]) - 1].strip()}")
    elif error.got:
        lines += [f"  {t.strip()[:96]}" for t in str(error.got).splitlines() if "error" in t
                  or "Killed" in t][:2]
    return lines


def main(arguments: list[str]) -> None:
    home, id, file, result = arguments
    hole, verdict, text = course.find(id, Path(home)), Verdict(), ""
    try:
        text = Path(file).read_text(encoding="utf-8")
        if untouched(hole, text):
            pass                                   # judge.py reports it
        elif alone(hole, text) or hole.language == "cuda":
            from flowedu_course.laws.cuda import compiled
            compiled(hole.functions[0], text)
        else:
            from flowedu.swap.build import compiled
            compiled(wrapped(hole, text))
    except (DeviceError, UnsupportedError) as error:
        verdict = Verdict("unjudged", lines=describe_error(error, ""))
    except Exception as error:
        verdict = Verdict("wrong", lines=describe_error(error, text))
    verdict.write(Path(result))


# ---- in the library
@contextmanager
def entered(name: str, address: int, work: int = 0, code: int = 0) -> Iterator[None]:
    """Make the library's op of this name run another kernel for one element type, inside the context.

    The op is initialized again before and after, which clears its cached calls.
    """
    from flowedu._kernels import TABLE
    from flowedu.core.ops.define import REGISTRY

    op, before = REGISTRY[name], TABLE[name, code]
    signature, meaning, parts, rules, doc = op.made

    def enter(row: tuple[int, int]) -> None:
        TABLE[name, code] = row
        op.__init__(signature, meaning, *parts, grad=rules, doc=doc)

    OWN.setdefault((name, code), before)
    enter((address, work))
    try:
        yield
    finally:
        enter(before)


@contextmanager
def libraries() -> Iterator[None]:
    """Make the library run its own kernels inside the context, also where others were entered."""
    with ExitStack() as stack:
        for (name, code), row in OWN.items():
            stack.enter_context(entered(name, *row, code))
        yield


@contextmanager
def taking(hole, file: Path) -> Iterator[None]:
    """Make the library run this kernel inside the context, in a CPU op or a step of chapter 8's ladders."""
    if hole.language == "cuda":
        from flowedu_course.laws.cuda import stepped
        with stepped(hole.functions[0], file):
            yield
    elif hole.language == "kernel":
        from flowedu_course.fallback import either
        yours = load(hole, file)
        with entered(yours.name, *either(yours.name, yours.address, yours.work)):
            yield
    else:                                          # the library has no op for a single line of C
        yield


# ---- stars
def timed() -> bool:
    """Return True if stars for time count: in `make check`, or with GRADE_SPEED=1."""
    return os.environ.get("GRADE_SPEED") == "1"


def stars(hole, measures: list[dict[str, Any]], text: str) -> Verdict:
    """Return a verdict with the stars reached in two of three tries, and the rule of the next star.

    Rules about time count only if timed().
    """
    counted = [r for r in hole.stars if timed() or not rules.is_timed(r)]
    reached = 0
    for rule in counted:
        if 2 * sum(rules.holds(rule, m) for m in measures) <= len(measures):
            break
        reached += 1
    lines = remarks(text) if hole.language == "kernel" else []
    numbers = {k: v for k, v in measures[0].items() if k not in ("right", "score")}
    if "yours" in numbers:
        lines.append("  speed     " + "; ".join(f"{k} {v:,.{1 if v < 100 else 0}f} µs"
                                                for k, v in numbers.items()))
    elif numbers and reached < len(counted):
        lines.append("  counted   " + "   ".join(f"{k.replace('_', ' ')} {v:,.10g}"
                                                 for k, v in numbers.items()))
    more = [f"{n} stars: {r.partition('#')[2].strip()}" for n, r in enumerate(counted, 1)
            if n > max(reached, 1)]
    if more:
        lines.append("  " + "     ".join(more))
    return Verdict(stars=reached, of=len(counted), extra=measures[0], lines=lines)


def remarks(text: str, most: int = 3) -> list[str]:
    """Return the lines in loops that call Python, each with a fix."""
    from flowedu.swap.build import annotated, loops

    yellow = [line for line in loops(annotated(text)) if line.score]
    lines = []
    for line in yellow[:most]:
        what, instead = _object(line.text, text)
        remark = f"score {line.score}: {what}   {instead}"
        room = max(12, 84 - len(remark))
        lines.append(f"  line {line.number:<4} {line.text.strip()[:room]:{min(room, 40)}s} {remark}")
    return [*lines, *([f"  and {len(yellow) - most} more lines"] if len(yellow) > most else [])]


def _object(line: str, text: str) -> tuple[str, str]:
    """Return (reason, fix) for a line that calls Python: its first untyped name or Python function."""
    typed = " ".join(re.findall(r"(?:cdef|cimport|cpdef)\b[^\n]*", text))
    head = re.match(r"\s*for\s+(\w+)\s+in", line)
    for name in ([head[1]] if head else []) + re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*\()", line):
        assignment = re.search(rf"^[ \t]*(for\s+{name}\b|{name}\s*[-+*/]?=[^=])", text, re.M)
        if assignment and not re.search(rf"\b{name}\b", typed):
            counts = re.search(rf"for\s+{name}\b", text)
            return f"{name} is a Python object", f"cdef {'Py_ssize_t' if counts else 'double'} {name}"
    for name in re.findall(r"\b([A-Za-z_]\w*)\s*\(", line):
        if re.search(rf"^\s*(from\s+\w+\s+)?import\b.*\b{name}\b", text, re.M):
            return f"{name} is a Python function", f"from libc.math cimport {name}"
    return "it calls Python", "add nogil, and Cython reports the calls"


if __name__ == "__main__":
    main(sys.argv[1:])
