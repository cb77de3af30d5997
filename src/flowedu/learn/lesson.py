"""Runs the code blocks of a lesson, in order, in one namespace.

    python -m flowedu.learn.lesson chapters/02_ops             all pages of a chapter, in reading order
    python -m flowedu.learn.lesson chapters/02_ops/README.md   one page

It shows headings, a line or two of text, the code and what it prints (reader.py); with PACE=1 it asks what will be printed
and waits for Enter.

A block starts with three backticks and `python`. In it, the output promised by a following block marked `text` must
appear: lessons do not lie. A block marked `python error=ShapeError` must raise that error. One marked `python needs=cuda`
runs where CUDA kernels do: on a GPU, or with FLOWEDU_CUDA=sim in the simulator; `python needs=sim` in the simulator alone,
which counts and reports what a GPU does not. In a student's tree a block that needs an open exercise, or that an answer
spoils, is left out, and so is what needs a name it would have made: a line says why, what the page promises of it is
shown, and the rest goes on.
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
from flowedu.learn.blocks import BLOCK, Block, block_of, pages
from flowedu.learn.left_out import LeftOut, needs, students, turn, why_not
from flowedu.learn.reader import Reader

ALONE = "FLOWEDU_LESSON_ALONE"                                           # this process shows one page, for another
NEEDS = {"cuda": "a GPU, or FLOWEDU_CUDA=sim", "sim": "FLOWEDU_CUDA=sim"}


class LessonError(AssertionError):
    """A block of a lesson did not do what the lesson says."""


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Inside, nothing is left of what ran before: no session, variable or virtual device. Afterwards, as it was."""
    import flowedu as flow
    from flowedu.core.layers.context import EAGER

    variables, threads = dict(EAGER.variables), flow.get_num_threads()
    flow.clear_default_session()
    gc.collect()                                   # pages look at how much memory is in use
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

    say: gets what they print. before: gets, before a block runs, the text since the last one and the block; at the end the
    rest of the text and None. Returns how many ran. Raises LessonError.
    """
    with fresh():
        return _run_blocks(path, say, before)


def _run_blocks(path: Path, say, before) -> int:
    source = path.read_text(encoding="utf-8")
    scope = {"__name__": "__lesson__"}
    count, printed, left_out, read = 0, "", False, 0
    unmade: dict[str, str] = {}                    # {name that a block would have made: why it did not}
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
            say(f"{where}: left out: {why}\n" if printed is None else printed)
        elif b.language == "text" and b.words == "output" and left_out:
            say(f"(the page has it:)\n{b.text}")
        elif b.language == "text" and b.words == "output" and printed is not None:
            missing = [line for line in b.text.splitlines() if not _promised(line, printed)]
            if missing and (hole := turn(printed)):
                say(f"{where}: left out: {needs(hole)}\n")
            elif missing and students():
                say(f"{where}: on the library's own lines, without open exercises, this is printed: {missing[0].strip()}\n")
            elif missing:
                raise LessonError(f"{where}: the lesson promises this line, which the block above does not print:\n"
                                  f"  {missing[0]}\nit printed:\n{printed}")
    before(source[read:], None)
    return count


def _lacks(need: str) -> bool:
    """Whether this machine has not what a block needs."""
    if need not in ("", "cuda", "sim"):
        raise LessonError(f"a block needs {need!r}, and nobody knows what that is")
    from flowedu import cuda
    from flowedu.cuda.machine import kind
    return bool(need) and (not cuda.is_available() or need == "sim" and kind() != "sim")


def _promised(line: str, printed: str) -> bool:
    """Whether `line` was printed; `...` in it stands for anything."""
    pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
    return any(re.fullmatch(pattern, p.strip()) for p in printed.splitlines()) or not line.strip()


def _made(text: str) -> set[str]:
    """The names a block gives something to."""
    found = set()
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            found.add(n.name)
    return found


def _run(block: Block, path: Path, scope: dict, unmade: dict[str, str]) -> str:
    where = f"{path}:{block.line}"
    out = io.StringIO()
    expected = block.word("error")
    try:
        with contextlib.redirect_stdout(out):
            # The blank lines make errors show the lesson's own line numbers and text. Not inherited: this file's
            # `from __future__ import annotations`, which would turn the lesson's annotations into strings.
            exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec", dont_inherit=True), scope)
    except Exception as error:
        if why := why_not(error, unmade, expected):
            for name in _made(block.text):         # what an earlier block called so is not what the lesson means
                unmade[name] = why
                scope.pop(name, None)
            raise LeftOut(why) from error
        if type(error).__name__ != expected:
            raise LessonError(f"{where}: {type(error).__name__}: {error}\n{out.getvalue()}") from error
        return out.getvalue() + str(error) + "\n"
    if expected and students():
        raise LeftOut(f"it should raise {expected}; on the library's own lines it does")
    if expected:
        raise LessonError(f"{where}: the lesson promises a {expected}, but the block runs")
    return out.getvalue()


def _shown(path: Path) -> int:
    """The exit status of one page, run here."""
    reader = Reader(path)
    try:
        count = run_lesson(path, reader.printed, reader.before)
    except (LessonError, FlowError) as error:
        print(error)
        return 1
    print(f"\n{path}: {count} code blocks ran", flush=True)
    return 0


def _apart(path: Path) -> int:
    """The exit status of one page, run in a process of its own: an answer with wrong strides can end it."""
    command = [sys.executable, "-m", "flowedu.learn.lesson", str(path)]
    code = subprocess.run(command, env={**os.environ, ALONE: "1"}).returncode
    if code < 0:
        print(f"\n{path}: ended by {signal.Signals(-code).name}: an answer of yours makes the library read or write\n"
              "  memory that is not its own; `make list` says which are not right yet", flush=True)
    return max(code, 0)


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m flowedu.learn.lesson chapters/NN_name ...")
        return 2
    show = _apart if students() and not os.environ.get(ALONE) else _shown
    for path in (p for a in arguments for p in (pages(Path(a)) if Path(a, "README.md").exists() else [Path(a)])):
        if not path.is_file():
            print(f"no lesson at {path}")
            return 2
        try:
            code = show(path)
        except KeyboardInterrupt:
            print("\nstopped" if show is _shown else "")
            return 130
        except BrokenPipeError:                         # as in `make chapter-4 | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
