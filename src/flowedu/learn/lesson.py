"""Runs the code blocks of a lesson, in order, in one namespace.

    python -m flowedu.learn.lesson chapters/02_ops/README.md

A block starts with three backticks and `python`. In it, the output promised by a following block marked `text` must
appear: lessons do not lie. A block marked `python error=ShapeError` must raise that error. One marked `python needs=cuda`
runs where CUDA kernels do: on a GPU, or with FLOWEDU_CUDA=sim in the simulator; `python needs=sim` in the simulator alone,
which counts and reports what a GPU does not. In a student's tree a block that needs an open exercise is left out, and so is
what needs a name it would have made.
"""
from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from flowedu.errors import FlowError

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

NEEDS = {"cuda": "a GPU, or FLOWEDU_CUDA=sim", "sim": "FLOWEDU_CUDA=sim"}


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the words after it, its text and the line it starts on."""

    language: str
    words: str
    text: str
    line: int

    def word(self, name: str) -> str:
        """What follows `name=` after the language; empty where it is not there."""
        return next((w.partition("=")[2] for w in self.words.split() if w.startswith(f"{name}=")), "")


class LessonError(AssertionError):
    """A block of a lesson did not do what the lesson says."""


class OpenHole(Exception):
    """A block needs an exercise that is not done; its number."""


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a lesson."""
    return [Block(m[1], m[2].strip(), m[3], markdown.count("\n", 0, m.start()) + 2) for m in _BLOCK.finditer(markdown)]


def run_lesson(path: Path, say=lambda text: None) -> int:
    """Run all Python blocks of a lesson; `say` gets what they print. Returns how many ran. Raises LessonError."""
    source = path.read_text(encoding="utf-8")
    scope = {"__name__": "__lesson__"}
    count, printed = 0, ""
    unmade: dict[str, str] = {}                    # {name that a block would have made: the exercise it needs}
    for b in blocks(source):
        where = f"{path}:{b.line}"
        if b.language == "python":
            lacks = NEEDS[b.word("needs")] if _lacks(b.word("needs")) else ""
            try:
                printed = None if lacks else _run(b, path, scope, unmade)
            except OpenHole as hole:
                printed, lacks = None, f"exercise {hole}, which is open"
            count += printed is not None
            say(f"{where}: left out: it needs {lacks}\n" if printed is None else printed)
        elif b.language == "text" and b.words == "output" and printed is not None:
            missing = [line for line in b.text.splitlines() if not _promised(line, printed)]
            if missing:
                raise LessonError(f"{where}: the lesson promises this line, which the block above does not print:\n"
                                  f"  {missing[0]}\nit printed:\n{printed}")
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


def _open(error: BaseException | None, unmade: dict[str, str]) -> str:
    """The open exercise that an error comes from, or ""."""
    while error is not None:
        which = re.fullmatch(r"(\d+\.\d+): your turn", str(error)) if isinstance(error, NotImplementedError) else None
        if which or isinstance(error, NameError) and error.name in unmade:
            return which[1] if which else unmade[error.name]
        error = error.__cause__ or error.__context__
    return ""


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
        if hole := _open(error, unmade):
            for name in _made(block.text):         # what an earlier block called so is not what the lesson means
                unmade[name] = hole
                scope.pop(name, None)
            raise OpenHole(hole) from error
        if type(error).__name__ != expected:
            raise LessonError(f"{where}: {type(error).__name__}: {error}\n{out.getvalue()}") from error
        return out.getvalue() + str(error) + "\n"
    if expected:
        raise LessonError(f"{where}: the lesson promises a {expected}, but the block runs")
    return out.getvalue()


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m flowedu.learn.lesson chapters/NN_name/README.md ...")
        return 2
    for a in arguments:
        path = Path(a)
        if not path.exists():
            print(f"no lesson at {path}")
            return 2
        try:
            count = run_lesson(path, lambda text: print(text, end=""))
        except (LessonError, FlowError) as error:
            print(error)
            return 1
        print(f"{path}: {count} code blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
