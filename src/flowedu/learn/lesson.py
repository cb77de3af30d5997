"""Runs the code blocks of a lesson, in order, in one namespace.

    python -m flowedu.learn.lesson chapters/02_ops             all pages of a chapter, in reading order
    python -m flowedu.learn.lesson chapters/02_ops/README.md   one page

It shows headings, a line or two of text, the code and what it prints (reader.py); with PACE=1 it asks what will be printed
and waits for Enter.

A block starts with three backticks and `python`. In it, the output promised by a following block marked `text` must
appear: lessons do not lie. A block marked `python error=ShapeError` must raise that error. One marked `python needs=cuda`
runs where CUDA kernels do: on a GPU, or with FLOWEDU_CUDA=sim in the simulator; `python needs=sim` in the simulator alone,
which counts and reports what a GPU does not. In a student's tree a block that needs an open exercise is left out, and so is
what needs a name it would have made.
"""
from __future__ import annotations

import ast
import contextlib
import gc
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from flowedu.errors import FlowError

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

HAN, FULL = "\u4e00-\u9fff", "\u3000-\u303f\uff00-\uffef"                # characters, and punctuation as wide as they are
END = r"\n(?:> ?| {1,3})?"                                               # of a line in a paragraph, a list, a quotation
UNBROKEN = re.compile(rf"(?<=[{HAN}{FULL}]){END}(?=[{HAN}{FULL}])|(?<=[{FULL}]){END}(?=[`\w(])|"
                      rf"(?<=[{HAN}])(\*\*){END}(?=[{HAN}])|(?<=[{HAN}]){END}(\*\*)(?=[{HAN}])")

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
    return [_block(m) for m in BLOCK.finditer(markdown)]


def unbroken(markdown: str) -> str:
    """Chinese without the line ends of the source, which would be read as blanks: it has none between words."""
    return UNBROKEN.sub(lambda m: "".join(filter(None, m.groups())), markdown)


def _block(match: re.Match) -> Block:
    return Block(match[1], match[2].strip(), match[3], match.string.count("\n", 0, match.start()) + 2)


def promised(source: str) -> dict[int, Block]:
    """{line of a Python block: the output that the page promises of it}."""
    found, last = {}, None
    for b in blocks(source):
        last = b if b.language == "python" else last
        if last is not None and (b.language, b.words) == ("text", "output"):
            found[last.line] = b
    return found


def pages(chapter: Path) -> list[Path]:
    """The English pages of a chapter in reading order: README.md, then those it links to, then the others."""
    first = chapter / "README.md"
    linked = re.findall(r"\]\(([\w-]+\.md)", first.read_text(encoding="utf-8"))
    rest = sorted(p for p in chapter.glob("*.md") if p != first and not p.name.endswith(".zh.md"))
    return [first, *sorted(rest, key=lambda p: linked.index(p.name) if p.name in linked else len(linked))]


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
    count, printed, read = 0, "", 0
    unmade: dict[str, str] = {}                    # {name that a block would have made: the exercise it needs}
    for match in BLOCK.finditer(source):
        b = _block(match)
        before(source[read:match.start()], b)
        read = match.end()
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
            if missing and (hole := _turn(printed)):
                say(f"{where}: left out: it needs exercise {hole}, which is open\n")
            elif missing and _students():
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


def _turn(said: str) -> str:
    """The open exercise that a process came to, by what it said; or ""."""
    found = re.search(r"NotImplementedError: (\d+\.\d+): your turn\b", said)
    return found[1] if found else ""


def _students() -> bool:
    """Whether this runs on a student's answers: a plan may be another, and right."""
    from flowedu.learn import course
    return bool(os.environ.get("FLOWEDU_HOLES") and course.student(course.HOME))


def opened(error: BaseException | None, unmade: Mapping[str, str] = MappingProxyType({})) -> str:
    """The open exercise that an error comes from, or ""."""
    while error is not None:
        which = _turn(f"{type(error).__name__}: {error}\n{getattr(error, 'stderr', '')}")          # of another process
        if which or isinstance(error, NameError) and error.name in unmade:
            return which or unmade[error.name]
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
        if hole := opened(error, unmade):
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
        print("usage: python -m flowedu.learn.lesson chapters/NN_name ...")
        return 2
    from flowedu.learn.reader import Reader

    for path in (p for a in arguments for p in (pages(Path(a)) if Path(a, "README.md").exists() else [Path(a)])):
        if not path.is_file():
            print(f"no lesson at {path}")
            return 2
        reader = Reader(path)
        try:
            count = run_lesson(path, reader.printed, reader.before)
        except (LessonError, FlowError) as error:
            print(error)
            return 1
        except KeyboardInterrupt:
            print("\nstopped")
            return 130
        except BrokenPipeError:                         # as in `make chapter-4 | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"\n{path}: {count} code blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
