"""Count sentences that are hard to read, per 1,000 sentences and kind of text.

    python tools/check_prose.py                        print the table
    python tools/check_prose.py --check                exit with 1 if a kind of text exceeds its limit
    python tools/check_prose.py --lower                lower the limits to the table
    python tools/check_prose.py --show src/flowedu/nn  list the sentences of a file or folder, with advice

`tools/prose.toml` lists the patterns and the limits. A limit may only be lowered. `make lint` runs the check.
"""
from __future__ import annotations

import argparse
import ast
import io
import math
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SETTINGS_FILE = ROOT / "tools" / "prose.toml"
SETTINGS = tomllib.loads(SETTINGS_FILE.read_text(encoding="utf-8"))
PATTERNS = {name: (re.compile(p["pattern"]), p["advice"]) for name, p in SETTINGS["patterns"].items()}
PYTHON, CYTHON, C = {".py"}, {".pyx", ".pxd", ".pxi"}, {".h", ".c", ".cpp", ".cu"}
BLOCK = re.compile(r"```.*?```", re.S)
ERROR_CALL = re.compile(r"(Error|Warning|warn)$")


class Sentence(NamedTuple):
    """A sentence with its kind of text and its position, `path:line`."""

    kind: str
    position: str
    text: str


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text that have at least three words.

    Code in backquotes counts as one word.
    """
    text = re.sub(r"`[^`\n]*`", "X", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    sentences = []
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*|#>\d])", text):
        words = " ".join(block.split()).lstrip("#-*>| ")
        sentences += re.split(r"(?<=[.!?]) +(?=[A-Z`\"'(])| \| ", words)
    return [s.strip() for s in sentences if len(re.findall(r"[A-Za-z]{2,}", s)) >= 3]


def read_docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def read_errors(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the constant texts of calls that construct an error or a warning."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if not ERROR_CALL.search(getattr(node.func, "attr", getattr(node.func, "id", ""))):
            continue
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            constants = [n.value for n in ast.walk(argument) if isinstance(n, ast.Constant)
                         and isinstance(n.value, str)]
            yield node.lineno, " X ".join(constants)


def read_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of Python code. Comments on consecutive lines are one text."""
    lines: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        if token.start[0] != last + 1:
            yield start, "\n".join(lines)
            lines, start = [], token.start[0]
        lines.append(token.string.lstrip("# "))
        last = token.start[0]
    yield start, "\n".join(lines)


def read_by_pattern(source: str, pattern: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(pattern, source, re.S | re.M):
        text = next(group for group in match.groups() if group is not None)
        yield source.count("\n", 0, match.start()) + 1, re.sub(r"(?m)^\s*(?://|\*|#)", " ", text)


def read_file(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (part, line, text) for each text of a file. A part is `page`, `first`, `comment`, or `error`."""
    source = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".md":
        yield "page", 1, BLOCK.sub("", source)
    elif path.suffix in PYTHON:
        nodes = list(ast.walk(ast.parse(source)))
        yield "first", 1, (ast.get_docstring(nodes[0]) or "").partition("\n\n")[0]
        yield from (("comment", *item) for item in read_docstrings(nodes))
        yield from (("comment", *item) for item in read_comments(source))
        yield from (("error", *item) for item in read_errors(nodes))
    elif path.suffix in CYTHON:
        yield from (("comment", *item) for item in read_by_pattern(source, r'"""(.*?)"""'))
        yield from (("comment", *item) for item in read_by_pattern(source, r"((?:^[ \t]*#[^\n]*\n)+)"))
    elif path.suffix in C:
        yield from (("comment", *item) for item in read_by_pattern(source, r"/\*(.*?)\*/|//([^\n]*)"))


def kind_of(path: str, part: str) -> str | None:
    """Return the kind of a text, or None if it is not counted (translations, answers, other programs)."""
    if re.search(r"(^|/)(wrong|right|programs)/|\.zh\.", path):
        return None
    if part == "page":
        return "lessons" if path.startswith(("chapters/", "book/")) else "pages"
    if path.startswith("tests/"):
        return "tests"
    if part == "error":
        return "errors"
    if part == "first":
        return "first lines" if path.startswith(("src/", "course/")) else None
    return "core" if "flowedu/core/" in path or "_kernels/core/" in path else "library"


def collect(paths: list[str]) -> list[Sentence]:
    command = ["git", "ls-files", "-z", "--", *paths]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    sentences = []
    for name in tracked.split("\0"):
        if not name or not (ROOT / name).is_file():
            continue
        for part, line, text in read_file(ROOT / name):
            if kind := kind_of(name, part):
                sentences += [Sentence(kind, f"{name}:{line}", s) for s in split_sentences(text)]
    return sentences


def rate(sentences: list[Sentence]) -> dict[str, tuple[int, float]]:
    """Return {kind: (number of sentences, sentences with a pattern per 1,000)}."""
    hits: dict[str, list[bool]] = defaultdict(list)
    for sentence in sentences:
        hits[sentence.kind].append(any(p.search(sentence.text) for p, _ in PATTERNS.values()))
    return {kind: (len(flags), 1000 * sum(flags) / len(flags)) for kind, flags in hits.items()}


def show(sentences: list[Sentence]) -> None:
    for kind, position, text in sentences:
        for name, (pattern, advice) in PATTERNS.items():
            if match := pattern.search(text):
                print(f"{position} [{kind}] {name}: {match[0].strip()!r} ({advice})\n    {text}")


def lower_limits(rates: dict[str, tuple[int, float]]) -> None:
    text = SETTINGS_FILE.read_text(encoding="utf-8")
    for kind, limit in SETTINGS["limits"].items():
        lowered = min(limit, math.ceil(rates[kind][1]))
        text = re.sub(rf'(?m)^("?{kind}"?) = {limit}$', rf"\1 = {lowered}", text)
    SETTINGS_FILE.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Count sentences that are hard to read.")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 if a limit of tools/prose.toml is exceeded")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the present rates")
    parser.add_argument("--show", metavar="PATH", help="list the sentences of a file or folder")
    options = parser.parse_args()
    if options.show:
        show(collect([options.show]))
        return 0
    failed = False
    rates = rate(collect([]))
    if options.lower:
        lower_limits(rates)
        return 0
    for kind, limit in SETTINGS["limits"].items():
        count, rate_of_kind = rates.get(kind, (0, 0.0))
        exceeded = rate_of_kind > limit
        failed |= exceeded
        if exceeded or not options.check:
            note = (f"   expected: at most {limit}; fix: python tools/check_prose.py --show FILE" if exceeded
                    else "")
            print(f"{kind:12} {count:6} sentences, {rate_of_kind:6.1f} of 1,000 with a pattern, limit "
                  f"{limit}{note}")
    return int(options.check and failed)


if __name__ == "__main__":
    sys.exit(main())
