"""Trees for students: `make student-tree UPTO=4 OUT=../handout`.

    python -m flowedu_course.teach.tree 4 ../handout --closed

The holes of chapters 1 to UPTO are stubs in src/, and no file contains a line of their answers. With
CLOSED=1, later holes are also stubs.
"""
from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError, FlowError
from flowedu.swap import load
from flowedu_course import course, rules
from flowedu_course.exercises import load as load_file
from flowedu_course.judge import answer, measured
from flowedu_course.teach import stubs

# Files for instructors only: answers, files that contain parts of them, and the tools of this folder.
KEPT_BACK = ("chapters/*/wrong/*", "chapters/*/right/*", "chapters/*/solutions.py", "chapters/*answers*",
             "chapters/*/answers/*", "chapters/*/mutants.toml", "tests/mutants/*", "tests/learn/*",
             "course/flowedu_course/teach/*", "course/flowedu_course/authors.py",
             "course/flowedu_course/alternatives.py",
             f"{course.SOLUTIONS}/*", ".ci/*", ".github/*", ".git", ".git/*")
NOT_OURS = ("build", "work", ".venv", ".hypothesis", ".*_cache", "__pycache__", "*.pyc", "*.so", "*.egg-info")
TEXT = (".py", ".pyx", ".pxd", ".pxi", ".h", ".md", ".toml", ".txt", ".cu", ".hpp", ".cpp", ".json", ".yml",
        "")

# The workflow of GitHub Classroom: a step with its points for each hole.
WORKFLOW = """# Written by `make student-tree`. Runs on every push: a step for each exercise.
name: exercises
on: [push, workflow_dispatch]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: build
        run: make build
"""
# Editors find the library, and check only the student's files.
EDITOR = {"python.defaultInterpreterPath": "${workspaceFolder}/.venv/bin/python",
          "python.analysis.extraPaths": ["src", "course"], "python.analysis.include": ["work"]}
# Rules of the Makefile that need the tools of this folder.
OF_INSTRUCTORS = re.compile(r"^([\w-]+):.*\n(?:\t.*\n)*?\t.*flowedu_course\.(?:teach|authors)\b.*\n(?:\t.*\n)*",
                            re.M)
REFUSED = "\\1:\n\t@echo 'make \\1 is for instructors; make check checks your answers'; exit 1\n"
STEP = """      - name: "{short} ({points} points)"
        id: hole-{dashed}
        if: success() || failure()
        timeout-minutes: 2
        run: make -s check EX={id}
"""


class Tree(NamedTuple):
    """An exported tree: its folder, number of files, files left out, and leaked lines of answers."""

    folder: Path
    files: int
    left_out: list[str]
    found: list[str]


def listed(home: Path) -> list[Path]:
    """Return the relative paths of a checkout's files: those in git, or without git all but built files."""
    if (home / ".git").exists():
        done = subprocess.run(["git", "-C", str(home), "ls-files", "-z"], capture_output=True)
        if done.returncode == 0:
            return [Path(p) for p in done.stdout.decode().split("\0") if p and (home / p).is_file()]
    return sorted(p.relative_to(home) for p in home.rglob("*") if p.is_file()
                  and not any(fnmatch.fnmatch(part, n) for part in p.relative_to(home).parts
                              for n in NOT_OURS))


def check_chapter(upto: int, home: Path = course.HOME) -> int:
    """Return the number of an existing chapter. Raises ArgumentError for others."""
    numbers = [c.number for c in course.chapters(home)]
    if upto not in numbers:
        raise ArgumentError(f"there is no chapter {upto} with exercises", got=str(upto),
                            expected=", ".join(map(str, numbers)))
    return upto


def open_holes(upto: int, closed: bool, home: Path = course.HOME) -> list:
    return [h for h in course.holes(home) if closed or h.chapter <= upto]


def select_holes(only: Iterable[str], upto: int, closed: bool = False, home: Path = course.HOME) -> list:
    """Return the open holes with these numbers or chapters. Raises ArgumentError if an entry has none."""
    there = open_holes(upto, closed, home)
    for what in only:
        if not any(what in (h.id, str(h.chapter)) for h in there):
            raise ArgumentError(f"ONLY: there is no exercise or chapter {what}", got=what,
                                expected=f"of chapters 1 to {upto}: {', '.join(h.id for h in there)}")
    return [h for h in there if h.id in only or str(h.chapter) in only]


def export(out: Path, upto: int, closed: bool = False, home: Path = course.HOME, tests: bool = False,
           built: bool = False, holes: Iterable | None = None,
           recorded: Mapping[str, Mapping[str, list]] | None = None) -> Tree:
    """Make a student's tree.

    tests: include tests/ and the files they read, for a tree that is not handed out; built: include compiled
    files, so that nothing is compiled on the same platform; holes: open these instead of the chapters' holes;
    recorded: outputs of the lessons, from record_outputs(). Raises ArgumentError if `out` is not empty or the
    chapter does not exist.
    """
    if out.exists() and any(out.iterdir()):
        raise ArgumentError(f"{out} is not empty", expected="a folder that does not exist yet", got=str(out),
                            fix="OUT=../other")
    if (home.resolve() in out.resolve().parents
        and "build" not in out.resolve().relative_to(home.resolve()).parts[:1]):
        raise ArgumentError(f"{out} is inside the tree that is exported", expected="a folder outside it",
                            got=str(out))
    check_chapter(upto, home)
    holes = open_holes(upto, closed, home) if holes is None else list(holes)
    own = stubs.own_lines(holes)
    texts = {f.relative_to(home): t for f, t in stubs.blank({}, holes).items()}
    # The simulator compiles these when they are launched. The library itself does not need them.
    texts |= {Path(h.module): f"#error {h.id}: {stubs.TURN}\n" for h in holes
              if h.language == "cuda" and h.module.startswith("src/")}
    out.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        new.chmod(0o755)
        left, count = [], 0
        for file in listed(home):
            if _is_kept_back(file, upto, tests):
                continue
            text = texts.get(file)
            if text is None and file.suffix in TEXT:
                text = stubs.without_marked((home / file).read_text(errors="surrogateescape",
                                                                    encoding="utf-8"), {h.id for h in holes})
                beside = not tests and file.parts[0] not in ("src", "course") and file.suffix != ".md"
                if beside and any(t.strip() in own for t in text.splitlines()):
                    left.append(str(file))
                    continue
            _put(new / file, home / file, text)
            count += 1
        if built:
            for so in (home / "src").rglob("*.so"):
                _put(new / so.relative_to(home), so, None)
            load_file(home / "tools" / "handed_kernels.py").seal(new)
        _finish(new, upto, closed, holes, home)
        for name, outputs in (recorded or {}).items():
            own_free = {page: [None if o and own.keys() & {t.strip() for t in o.splitlines()} else o
                               for o in printed] for page, printed in outputs.items()}
            (new / "chapters" / name / "recorded.json").write_text(json.dumps(own_free, indent=0), "utf-8")
        leaks = [*answers_in(new, own)]
        if out.exists():
            out.rmdir()
        new.rename(out)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return Tree(out, count, left, leaks)


def _is_kept_back(file: Path, upto: int, tests: bool) -> bool:
    name = str(file)
    if tests:                                      # not handed out; tests read answers
        return False
    if any(fnmatch.fnmatch(name, k) for k in KEPT_BACK) or name.startswith("tests/"):
        return True
    return file.name in ("chapter.toml", "chapter.zh.toml") and int(file.parts[1][:2]) > upto


def _put(to: Path, origin: Path, text: str | None) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        shutil.copy2(origin, to)
    else:
        to.write_text(text, errors="surrogateescape", encoding="utf-8")
        to.chmod(origin.stat().st_mode)


def _finish(new: Path, upto: int, closed: bool, holes: Sequence, home: Path) -> None:
    """Write the files that only a student's tree has."""
    mine = [h for h in course.holes(home) if h.chapter <= upto]
    (new / "student.json").write_text(json.dumps({"upto": upto, "closed": closed,
                                                  "open": [h.id for h in holes],
                                                  "figures": figures(mine),
                                                  "at_hand": {h.id: h.at_hand for h in holes}},
                                                 indent=1), encoding="utf-8")
    shutil.copyfile(home / "course/flowedu_course/teach/agents.md", new / "AGENTS.md")
    (new / ".vscode").mkdir(exist_ok=True)
    (new / ".vscode" / "settings.json").write_text(json.dumps(EDITOR, indent=2) + "\n", encoding="utf-8")
    makefile = new / "Makefile"
    # Chapters and demos run on the student's answers.
    if makefile.exists():
        text = makefile.read_text("utf-8").replace("\nVENV    :=", "\nYOURS   ?= 1\nVENV    :=", 1)
        if not (new / "course/flowedu_course/teach").exists():
            text = OF_INSTRUCTORS.sub(REFUSED, text)
        makefile.write_text(text, "utf-8")
    workflow = new / ".github" / "workflows" / "exercises.yml"
    workflow.parent.mkdir(parents=True, exist_ok=True)
    steps = [STEP.format(short=h.short.replace('"', "'"), points=h.points, id=h.id,
                         dashed=h.id.replace(".", "-"))
             for h in mine if not h.is_hunt]
    workflow.write_text(WORKFLOW + "".join(steps), encoding="utf-8")


def record_outputs(home: Path = course.HOME) -> dict[str, dict[str, list[str | None]]]:
    """Run the lessons with the library's own code. Return {chapter: {page: outputs of its Python blocks}}.

    `make book` shows the same outputs and shares the cache in build/book. Raises RuntimeError if a lesson
    fails.
    """
    pages = [p for p in sorted(home.glob("chapters/*/*.md")) if not p.name.endswith(".zh.md")]
    found: dict[str, dict[str, list[str | None]]] = {}
    printed = load_file(home / "book" / "outputs.py").all_outputs(pages, home / "build" / "book" / "outputs")
    for page, outputs in printed.items():
        found.setdefault(page.parent.name, {})[page.stem] = outputs
    return found


def figures(holes: Iterable) -> dict[str, dict]:
    """Return {hole: measures that its stars compare with}, without measures that depend on the answer."""
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        for hole in holes:
            if hole.stars and not hole.is_separate:           # kernels' stars need no withheld figures
                both = []
                given = (hole.folder / hole.stub).read_text(encoding="utf-8") if hole.stub else ""
                for n, text in enumerate((stubs.library(hole), given)):
                    file = Path(folder, f"{n}_{hole.file}")
                    file.write_text(text, encoding="utf-8")
                    if text:
                        both.append(measured(hole, answer(hole, load(file, stubs.module_of(hole)))))
                # The answer's measures.
                own = {k for rule in hole.stars for k, _ in rules.goals(rule)}
                named = {k for rule in (hole.half, *hole.stars) if rule for k in rules.names(rule)} - own
                result[hole.id] = {k: v for k, v in both[0].items() if k in named
                                   and all(b.get(k) == v for b in both)}
    return result


def answers_in(folder: Path, own: dict[str, str]) -> Iterable[str]:
    """Yield "file: hole: line" for each line of an answer in a folder."""
    long = {t.encode(): t for t in own if len(t) > 40}
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = file.relative_to(folder)
        if file.suffix in TEXT:
            yield from (f"{name}: {own[t.strip()]}: {t.strip()}" for t in file.read_text(errors="replace",
                                                                                         encoding="utf-8").splitlines()
                        if t.strip() in own)
        else:
            data = file.read_bytes()
            yield from (f"{name}: {own[t]}: {t}" for raw, t in long.items() if raw in data)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.tree",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("upto", type=int, help="the last chapter whose exercises are open")
    parser.add_argument("out", type=Path)
    parser.add_argument("--closed", action="store_true", help="also replace later exercises by stubs")
    parser.add_argument("--only", nargs="+", metavar="4.3",
                        help="open only these exercises or chapters")
    parser.add_argument("--ready", action="store_true",
                        help="include compiled kernels, and outputs of the lessons, which are recorded first")
    options = parser.parse_args(arguments)
    try:
        closed = options.closed or bool(os.environ.get("CLOSED"))
        check_chapter(options.upto)
        recorded = record_outputs() if options.ready else None
        made = export(options.out, options.upto, closed, built=options.ready, recorded=recorded,
                      holes=options.only and select_holes(options.only, options.upto, closed))
    except (FlowError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{made.folder}: {made.files} files, exercises of chapters 1 to {options.upto}"
          + (f", open {' '.join(options.only)}" if options.only else ""))
    for name in made.left_out:
        print(f"  left out, because it contains a line of an answer: {name}")
    for line in made.found:
        print(f"  a line of an answer was found in {line}")
    return 1 if made.found else 0


if __name__ == "__main__":
    sys.exit(main())
