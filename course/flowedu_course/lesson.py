"""Runner of the code blocks of a lesson, in order, in one namespace.

    python -m flowedu_course.lesson chapters/02_ops             all pages of a chapter, in reading order
    python -m flowedu_course.lesson chapters/02_ops/README.md   one page

reader.py shows headings, a line or two of text, the code, and its output. With PACE=1 it asks for a
prediction of the output and waits for Enter.

A block starts with three backticks and `python`. A following block marked `text output` has lines that it
must print. A block marked `python error=ShapeError` must raise that error. A block marked `python needs=cuda`
runs only with a GPU, or in the simulator with FLOWEDU_CUDA=sim; `python needs=sim` runs only in the
simulator, for example because it uses counters. In a student's tree, some blocks are left out: blocks that
need an open exercise, blocks that fail because of an answer, and later blocks that use the names of these
blocks. The reason, and the output that was recorded when the tree was made, are printed instead.
"""
from __future__ import annotations

import ast
import contextlib
import gc
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from flowedu.errors import FlowError
from flowedu_course.blocks import BLOCK, Block, block_of, pages
from flowedu_course.left_out import LeftOut, needs, recorded, students, turn, why_not
from flowedu_course.reader import Reader

# Set in a process that shows one page.
ALONE = "FLOWEDU_LESSON_ALONE"
NEEDS = {"cuda": "a GPU, or FLOWEDU_CUDA=sim", "sim": "FLOWEDU_CUDA=sim"}


class LessonError(AssertionError):
    """A block of a lesson does not behave as the lesson describes."""


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Start the context without sessions, variables, or virtual devices; restore the state afterwards."""
    import flowedu as flow
    from flowedu.core.layers.context import EAGER

    variables, threads = dict(EAGER.variables), flow.get_num_threads()
    flow.clear_default_session()
    gc.collect()                                   # pages print the memory in use
    try:
        yield
    finally:
        flow.clear_default_session()
        flow.distributed.set_virtual_devices(1)
        flow.random.seed(None)
        flow.set_num_threads(threads)
        EAGER.variables.update(variables)


def run_lesson(path: Path, say=lambda text: None, before=lambda text, block: None) -> int:
    """Run all Python blocks of a lesson, in a fresh session.

    say(text) is called with the output of each block. before(text, block) is called before each block with
    the text since the last block, and at the end with the remaining text and None. Returns the number of
    blocks that ran. Raises LessonError.
    """
    with fresh():
        return _run_blocks(path, say, before)


def _run_blocks(path: Path, say, before) -> int:
    source = path.read_text(encoding="utf-8")
    scope = {"__name__": "__lesson__"}
    count, printed, left_out, read = 0, "", False, 0
    unmade: dict[str, str] = {}                    # {name that a left-out block would define: reason}
    outputs = iter(recorded(path))
    for match in BLOCK.finditer(source):
        b = block_of(match)
        before(source[read:match.start()], b)
        read = match.end()
        where = f"{path}:{b.line}"
        if b.language == "python":
            why = f"it needs {NEEDS[b.word('needs')]}" if _lacks(b.word("needs")) else ""
            try:
                printed = None if why else _run(b, path, scope, unmade)
                left_out = False
            except LeftOut as error:
                printed, why, left_out = None, str(error), True
            count += printed is not None
            earlier = next(outputs, None)
            if printed is None and earlier:
                left_out = False
                why += f"\n(recorded with the library's own code:)\n{earlier.rstrip()}"
            say(f"{where}: left out: {why}\n" if printed is None else printed)
        elif b.language == "text" and b.words == "output" and left_out:
            say(f"(expected output:)\n{b.text}")
        elif b.language == "text" and b.words == "output" and printed is not None:
            missing = [line for line in b.text.splitlines() if not _promised(line, printed)]
            if missing and (hole := turn(printed)):
                say(f"{where}: left out: {needs(hole)}\n")
            elif missing and students():
                say(f"{where}: with the library's code and no open exercises, the block prints: "
                    f"{missing[0].strip()}\n")
            elif missing:
                raise LessonError(f"{where}: the block above does not print this expected line:\n"
                                  f"  {missing[0]}\nit printed:\n{printed}")
    before(source[read:], None)
    return count


def _lacks(need: str) -> bool:
    """Return True if a block needs a device that this machine does not have."""
    if need not in ("", "cuda", "sim"):
        raise LessonError(f"unknown value needs={need!r} of a block; expected: cuda or sim")
    from flowedu import cuda
    from flowedu.cuda.machine import kind
    return bool(need) and (not cuda.is_available() or need == "sim" and kind() != "sim")


def _promised(line: str, printed: str) -> bool:
    """Return True if `line` was printed; `...` in it matches anything."""
    pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
    return any(re.fullmatch(pattern, p.strip()) for p in printed.splitlines()) or not line.strip()


def _defined_names(text: str) -> set[str]:
    """Return the names that a block defines."""
    names = set()
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            names.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            names.add(n.name)
    return names


def _run(block: Block, path: Path, scope: dict, unmade: dict[str, str]) -> str:
    where = f"{path}:{block.line}"
    out = io.StringIO()
    expected = block.word("error")
    try:
        with contextlib.redirect_stdout(out):
            # The blank lines make errors show the lesson's line numbers and text. dont_inherit excludes this
            # file's `from __future__ import annotations`, which would turn the lesson's annotations into
            # strings.
            exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec", dont_inherit=True), scope)
    except Exception as error:
        if why := why_not(error, unmade, expected):
            for name in _defined_names(block.text):         # an earlier value of the name would be wrong now
                unmade[name] = why
                scope.pop(name, None)
            raise LeftOut(why) from error
        if type(error).__name__ != expected:
            raise LessonError(f"{where}: {type(error).__name__}: {error}\n{out.getvalue()}") from error
        return out.getvalue() + str(error) + "\n"
    if expected and students():
        raise LeftOut(f"it should raise {expected}, as it does with the library's code")
    if expected:
        raise LessonError(f"{where}: the block should raise {expected}, but no error was raised")
    return out.getvalue()


def _run_page(path: Path) -> int:
    """Run one page in this process and return its exit status."""
    reader = Reader(path)
    try:
        count = run_lesson(path, reader.printed, reader.before)
    except (LessonError, FlowError) as error:
        print(error)
        return 1
    print(f"\n{path}: {count} code blocks ran", flush=True)
    return 0


def _apart(path: Path) -> int:
    """Run one page in a separate process, which a wrong answer may crash, and return its exit status."""
    command = [sys.executable, "-m", "flowedu_course.lesson", str(path)]
    code = subprocess.run(command, env={**os.environ, ALONE: "1"}).returncode
    if code < 0:
        print(f"\n{path}: ended by {signal.Signals(-code).name}: one of your answers makes the library read "
              f"or write\n  memory outside its arrays; `make list` shows which answers are not right yet",
              flush=True)
    return max(code, 0)


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m flowedu_course.lesson chapters/NN_name ...")
        return 2
    show = _apart if students() and not os.environ.get(ALONE) else _run_page
    for path in (p for a in arguments for p in (pages(Path(a)) if Path(a, "README.md").exists()
                                                else [Path(a)])):
        if not path.is_file():
            print(f"no lesson at {path}")
            return 2
        try:
            code = show(path)
        except KeyboardInterrupt:
            print("\nstopped" if show is _run_page else "")
            return 130
        except BrokenPipeError:                         # such as `make chapter-4 | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
