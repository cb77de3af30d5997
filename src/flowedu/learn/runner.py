"""The course's commands: `make start`, `check`, `watch`, `hint`, `list`, `solution`; `python -m flowedu.learn ...`.

A student's answers are files of one folder, work/: nothing under src/ is ever written.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flowedu.errors import FlowError
from flowedu.learn import course, kernels, limits, source
from flowedu.learn.judge import stub
from flowedu.learn.progress import Progress, digest

MARKS = {"open": " ", "wrong": "x", "right": "*"}


class Runner:
    """Chapters, a work folder, and what was done so far."""

    def __init__(self, home: Path, work: Path, seed: int = 0):
        self.home, self.work, self.seed = home, work, seed
        self.chapters = course.chapters(home)
        self.holes = [h for c in self.chapters for h in c.holes]
        self.progress = Progress(work)

    def file(self, hole) -> Path:
        return self.work / hole.file

    def current(self):
        """The first that is not right, of those begun or next; None: all are."""
        return next((h for h in self.holes if self.progress.row(h.id)["state"] != "right"), None)

    def start(self, chapter: int = 0) -> list[str]:
        """Work files for the holes of a chapter (0: the first that has open ones); those that are there are left alone."""
        if not chapter:
            hole = self.current() or self.holes[0]
            chapter = hole.chapter
        mine = [h for h in self.holes if h.chapter == chapter]
        if not mine:
            there = ", ".join(str(c.number) for c in self.chapters)
            return [f"chapter {chapter} has no exercises; chapters {there} have"]
        self.work.mkdir(parents=True, exist_ok=True)
        made = []
        for h in mine:
            if not self.file(h).exists():
                new = self.file(h).with_suffix(".new")
                new.write_text(stub(h, source.file_of(h.module).read_text()))
                new.rename(self.file(h))
                made.append(h.file)
        first = next((h for h in mine if self.progress.row(h.id)["state"] != "right"), mine[0])
        return [f"chapter {chapter}: {len(mine)} exercises in {self.work}/, {len(made)} of them new",
                f"begin with {self.work}/{first.file} ({first.minutes} minutes), then `make check EX={first.id}`, "
                "or leave `make watch` running"]

    def check(self, hole, fresh: bool = True) -> tuple[bool, list[str]]:
        """(whether it is right, what to print)"""
        file, row = self.file(hole), self.progress.row(hole.id)
        if not file.exists():
            return False, [f"{hole.short}: not begun   `make start CH={hole.chapter}` makes {file}"]
        key = digest(file, source.file_of(hole.module), Path(limits.__file__))
        if not fresh and row["state"] == "right" and row["hash"] == key:
            return True, [self._headline(hole, "right" + self._stars(hole, row["stars"]))]
        if hole.kind == "kernel":
            kernels.set_up(hole, self.home)
        verdict = limits.judged(hole, file, self.home, self.seed, speed=os.environ.get("GRADE_SPEED") != "0")
        if verdict["state"] == "unjudged":
            return False, [self._headline(hole, "cannot be judged here"), *verdict["lines"]]
        row["checks"] += 1
        row["seconds"] = round(row["seconds"] + verdict.get("seconds", 0), 3)
        row["state"], row["hash"] = verdict["state"], key
        if verdict["state"] == "right":
            row["stars"] = max(row["stars"], verdict["stars"])
        self.progress.save()
        return verdict["state"] == "right", self.told(hole, verdict, file)

    def told(self, hole, verdict: dict[str, Any], file: Path) -> list[str]:
        """A verdict in at most 12 lines of 100 columns, after what the answer itself printed."""
        row = self.progress.row(hole.id)
        if verdict["state"] == "open":
            return [f"{hole.short}: not begun   about {hole.lines} lines, {hole.minutes} minutes   {file}"]
        said = [line[:100] for line in verdict.get("output", "").splitlines()]
        if verdict["state"] == "right":
            lines = [self._headline(hole, "right." + self._stars(hole, verdict["stars"])), *verdict["lines"]]
            if verdict["lines"]:
                lines.append("  h: hint")
        else:
            taken = row["hints"]
            lines = [self._headline(hole, verdict.get("title", "")), *verdict["lines"][:8],
                     f"  why   {hole.why}", f"  h: hint {min(taken + 1, len(hole.hints))} of {len(hole.hints)}"]
        return said + [line[:100].rstrip() for line in lines]

    @staticmethod
    def _headline(hole, text: str) -> str:
        return f"{hole.short:45s} {text}".rstrip()

    @staticmethod
    def _stars(hole, n: int) -> str:
        return f" {'*' * n} {n} of {len(hole.stars)} stars".replace("  ", " ") if hole.stars else ""

    def hint(self, hole) -> list[str]:
        """The next of three; they are counted."""
        row = self.progress.row(hole.id)
        row["hints"] = min(row["hints"] + 1, len(hole.hints))
        self.progress.save()
        n = row["hints"]
        return [f"{hole.short}   hint {n} of {len(hole.hints)}", f"  {hole.hints[n - 1]}"]

    def list(self) -> list[str]:
        out = []
        for c in self.chapters:
            right = sum(self.progress.row(h.id)["state"] == "right" for h in c.holes)
            out.append(f"chapter {c.number}: {c.title}   {right} of {len(c.holes)}   about {c.hours:g} hours")
            for h in c.holes:
                row = self.progress.row(h.id)
                stars = "*" * row["stars"] if h.stars else ""
                mark = MARKS[row["state"]]
                out.append(f"  [{mark}] {h.id:5s} {h.title:48s} {h.minutes:3d} min {h.points:3d} points  {stars}".rstrip())
        return out

    def solution(self, hole, force: bool = False) -> list[str]:
        """The library's own lines, after passing."""
        if self.progress.row(hole.id)["state"] != "right" and not force:
            return [f"{hole.short}: not right yet; FORCE=1 shows the library's lines all the same"]
        if hole.kind == "kernel":
            return [f"# {source.file_of(hole.module).relative_to(self.home)}", *kernels.shown(hole)]
        out = []
        for path in hole.objects:
            out += [f"# {source.file_of(hole.module).relative_to(self.home)}: {path}", *source.lines(hole.module, path), ""]
        return out[:-1]

    def bar(self, chapter: int) -> str:
        rows = [self.progress.row(h.id) for h in self.holes if h.chapter == chapter]
        right, stars = sum(r["state"] == "right" for r in rows), sum(r["stars"] for r in rows)
        filled = round(10 * right / max(len(rows), 1))
        return f"chapter {chapter}  [{'#' * filled}{'-' * (10 - filled)}] {right} of {len(rows)}  {stars} stars"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["start", "check", "watch", "hint", "list", "solution"])
    parser.add_argument("exercise", nargs="?", default="", help="4.3, say; of start: a chapter")
    parser.add_argument("--work", type=Path, default=Path(os.environ.get("WORK", "work")))
    parser.add_argument("--home", type=Path, default=course.HOME, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except FlowError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.strerror}: {error.filename}; nothing was lost, try again", file=sys.stderr)
    return 2


def _run(options: argparse.Namespace) -> int:
    runner = Runner(options.home, options.work, options.seed)
    if runner.progress.note:
        print(runner.progress.note)
    if options.command == "start":
        print("\n".join(runner.start(int(options.exercise or 0))))
        return 0
    if options.command == "list":
        print("\n".join(runner.list()))
        return 0
    if options.command == "watch":
        from flowedu.learn.watch import watch
        return watch(runner)
    hole = course.find(options.exercise, options.home) if options.exercise else runner.current()
    if hole is None:
        print("all exercises are right")
        return 0
    if options.command == "check":
        right, lines = runner.check(hole)
        print("\n".join(lines))
        return 0 if right else 1
    print("\n".join(runner.hint(hole) if options.command == "hint" else runner.solution(hole, options.force)))
    return 0


