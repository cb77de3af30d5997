"""The course's commands: `make start`, `check`, `watch`, `hint`, `list`, `solution`, `milestone-4`;
`python -m flowedu.learn ...`.

A student's answers are files of one folder, work/: nothing under src/ is ever written.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flowedu.errors import ArgumentError, FlowError
from flowedu.learn import course, kernels, limits, milestone, source
from flowedu.learn.handout import stub
from flowedu.learn.language import columns, cut, padded, page, short, tr
from flowedu.learn.progress import Progress, digest, told_of, written
from flowedu.learn.watch import watch

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
        return next((h for h in self.holes if not self._right(h.id)), None)

    def after(self, hole):
        """The next that is not right, after this one, then from the beginning; None: all are."""
        at = self.holes.index(hole)
        others = [*self.holes[at + 1:], *self.holes[:at]]
        return next((h for h in others if not self._right(h.id)), None)

    def _right(self, id: str) -> bool:
        return self.progress.row(id)["state"] == "right"

    def unmet(self, hole) -> list[str]:
        """Exercises that come before this one here, and are not right yet."""
        return [id for id in hole.first if not self._right(id)]

    def start(self, chapter: int = 0) -> list[str]:
        """Work files for the holes of a chapter (0: the first that has open ones); those that are there are left alone."""
        if not chapter:
            hole = self.current() or self.holes[0]
            chapter = hole.chapter
        mine = [h for h in self.holes if h.chapter == chapter]
        if not mine:
            there = ", ".join(str(c.number) for c in self.chapters)
            return [tr("chapter {chapter} has no exercises; chapters {there} have", chapter=chapter, there=there)]
        self.work.mkdir(parents=True, exist_ok=True)
        made = []
        for h in mine:
            if not self.file(h).exists():
                written(self.file(h), stub(h))
                made.append(h.file)
        first = next((h for h in mine if not self._right(h.id)), mine[0])
        earlier = [h for h in self.holes if h.chapter < chapter and any(h.id in self.unmet(m) for m in mine)]
        return [tr("chapter {chapter}: {many} exercises in {work}/, {new} of them new", chapter=chapter, many=len(mine),
                   work=self.work, new=len(made)),
                *([tr("some of them run {ids}, which come first ({minutes} minutes): `make list`",
                      ids=", ".join(h.id for h in earlier), minutes=sum(h.minutes for h in earlier))] if earlier else []),
                tr("begin with {file} ({minutes} minutes), then `make check EX={id}`, or leave `make watch` running",
                   file=self.file(first), minutes=first.minutes, id=first.id)]

    def check(self, hole, fresh: bool = True) -> tuple[bool, list[str]]:
        """(whether it is right, what to print)"""
        file, row = self.file(hole), self.progress.row(hole.id)
        if not file.exists():
            return False, [tr("{short}: not begun   `make start CH={chapter}` makes {file}", short=short(hole),
                              chapter=hole.chapter, file=file)]
        key = digest(file, source.around(hole), Path(limits.__file__))
        if not fresh and row["state"] == "right" and row["hash"] == key:
            return True, [self._headline(hole, tr("right") + self._stars(hole, row["stars"]))]
        if hole.kind == "kernel":
            kernels.set_up(hole, self.home)
        verdict = limits.judged(hole, file, self.home, self.seed, speed=os.environ.get("GRADE_SPEED") != "0")
        if verdict["state"] == "unjudged":
            return False, self.told(hole, verdict, file)
        row["checks"] += 1
        row["seconds"] = round(row["seconds"] + verdict.get("seconds", 0), 3)
        row["state"], row["hash"] = verdict["state"], key
        if verdict["state"] == "right":
            row["stars"] = max(row["stars"], verdict["stars"])
        return verdict["state"] == "right", [*self.told(hole, verdict, file), *self._saved()]

    def _saved(self) -> list[str]:
        """What was done is written down; a line if that cannot be."""
        try:
            self.progress.save()
        except OSError as error:
            return [tr("  this could not be written down: {why}: {file}", why=error.strerror, file=self.progress.file.name)]
        return []

    def told(self, hole, verdict: dict[str, Any], file: Path, keys: bool = True) -> list[str]:
        """A verdict in at most 12 lines of 100 columns, after what the answer itself printed, which is marked as such.
        keys: whether somebody is there to press them."""
        row = self.progress.row(hole.id)
        unmet = self.unmet(hole)
        before = [tr("  before it   {ids}: what its laws run is open in this tree", ids=", ".join(unmet))] if unmet else []
        if verdict["state"] == "unjudged":
            return [self._headline(hole, tr("cannot be judged here")), *(cut(line) for line in verdict["lines"])]
        if verdict["state"] == "open" and not verdict["lines"]:
            return [tr("{short}: not begun   {about}   {file}", short=short(hole), about=tr(hole.about), file=file),
                    *before]
        said = [cut(f"  | {line}") for line in verdict.get("output", "").splitlines()]
        said = [tr("printed by {file}:", file=file.name), *said] if said else []
        found = [tr(line) for line in verdict["lines"]]
        if verdict["state"] == "right":
            lines = [self._headline(hole, tr("right.") + self._stars(hole, verdict["stars"])), *found]
            lines += [tr("  h: hint")] * (keys and bool(found))
        else:
            taken = row["hints"]
            lines = [self._headline(hole, tr(verdict.get("title", ""))), *found[:8 - len(before)], *before,
                     tr("  why   {page}", page=page(hole)),
                     *[tr("  h: hint {next} of {many}", next=min(taken + 1, len(hole.hints)), many=len(hole.hints))] * keys]
        return said + [cut(line).rstrip() for line in lines]

    @staticmethod
    def _headline(hole, text: str) -> str:
        width = max(columns(short(hole)) + 1, min(45, 99 - columns(text)))   # the text matters more than the column
        return f"{padded(short(hole), width)} {text}".rstrip()

    @staticmethod
    def _stars(hole, n: int) -> str:
        told = tr("{n} of {many} stars", n=n, many=len(hole.stars))
        return f" {'*' * n} {told}".replace("  ", " ") if hole.stars else ""

    def hint(self, hole) -> list[str]:
        """The next of three; they are counted."""
        row, many = self.progress.row(hole.id), len(hole.hints)
        if row["hints"] >= many:
            return [tr("{short}   all {many} hints", short=short(hole), many=many),
                    *(f"  {i}. {tr(text)}" for i, text in enumerate(hole.hints, 1))]
        row["hints"] += 1
        return [tr("{short}   hint {next} of {many}", short=short(hole), next=row["hints"], many=many),
                f"  {tr(hole.hints[row['hints'] - 1])}", *self._saved()]

    def list(self) -> list[str]:
        out, by = [], {h.id: h for h in self.holes}
        for c in self.chapters:
            right = sum(self.progress.row(h.id)["state"] == "right" for h in c.holes)
            out.append(tr("chapter {number}: {title}   {right} of {many}   about {hours} hours", number=c.number,
                          title=tr(c.title), right=right, many=len(c.holes), hours=f"{c.hours:g}"))
            for h in c.holes:
                kept = self.progress.row(h.id)
                stars = "*" * kept["stars"] if h.stars else ""
                mark = MARKS[kept["state"]]
                unmet = self.unmet(h)
                after = " ".join(i for i in unmet if not any(i in by[j].needs for j in unmet))
                more = stars or after and tr("after {ids}", ids=after)
                out.append(tr("  [{mark}] {id} {title} {minutes} min {points} points  {more}", mark=mark, id=f"{h.id:5s}",
                              title=padded(tr(h.title), 48), minutes=f"{h.minutes:3d}", points=f"{h.points:3d}",
                              more=more).rstrip())
            if c.milestone is not None:
                out.append(tr("      then `make milestone-{number}`: {title}", number=c.number,
                              title=tr(c.milestone.title)))
        return out

    def solution(self, hole, force: bool = False) -> list[str]:
        """The library's own lines, after passing."""
        if hole.withheld and not hole.solution:
            return [tr("{short}: the library's own lines are not in this tree, which was handed out without them;",
                       short=short(hole)),
                    tr("  whoever handed it out has them: what is put into {folder}/ is shown here",
                       folder=course.SOLUTIONS)]
        if not self._right(hole.id) and not force:
            return [tr("{short}: not right yet; FORCE=1 shows the library's lines all the same", short=short(hole))]
        if hole.withheld:
            return [f"# {hole.solution.relative_to(self.home)}", *hole.solution.read_text(encoding="utf-8").splitlines()]
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
        return tr("chapter {chapter}  [{bar}] {right} of {many}  {stars} stars", chapter=chapter, right=right,
                  many=len(rows), bar=f"{'#' * filled}{'-' * (10 - filled)}", stars=stars)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["start", "check", "watch", "hint", "list", "solution", "milestone"])
    parser.add_argument("exercise", nargs="?", default="", help="4.3, say; of start and milestone: a chapter")
    parser.add_argument("--work", type=Path, default=Path(os.environ.get("WORK", "work")))
    parser.add_argument("--home", type=Path, default=course.HOME, help=argparse.SUPPRESS)
    parser.add_argument("--seed", default=os.environ.get("SEED") or "0")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--library", action="store_true", help="milestone: on the library's own lines")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except FlowError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped; nothing was lost", file=sys.stderr)
        return 130
    except BrokenPipeError:                        # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(told_of(error, options.work), file=sys.stderr)
    return 2


def _run(options: argparse.Namespace) -> int:
    runner = Runner(options.home, options.work, _number("SEED", options.seed))
    if runner.progress.note:
        print(runner.progress.note)
    if options.command == "start":
        print("\n".join(runner.start(_number("CH", options.exercise or "0"))))
        return 0
    if options.command == "list":
        print("\n".join(runner.list()))
        return 0
    if options.command == "watch":
        return watch(runner, course.find(options.exercise, options.home) if options.exercise else None)
    if options.command == "milestone":
        return milestone.run(runner, milestone.find(options.exercise, options.home), options.library)
    hole = course.find(options.exercise, options.home) if options.exercise else runner.current()
    if hole is None:
        print(tr("all exercises are right"))
        return 0
    if options.command == "check":
        right, lines = runner.check(hole)
        print("\n".join(lines))
        if right:
            print("\n".join(_afterwards(runner, hole)))
        return 0 if right else 1
    print("\n".join(runner.hint(hole) if options.command == "hint" else runner.solution(hole, options.force)))
    return 0


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"{name} is no number", expected=f"{name}=4, say", got=text) from None


def _afterwards(runner: Runner, hole) -> list[str]:
    """What to do when one is right."""
    said = [] if hole.withheld and not hole.solution else [
        tr("  the library's own lines: `make solution EX={id}`", id=hole.id)]
    h = runner.after(hole)
    if h is None:
        return [*said, tr("  that was the last one")]
    begin = runner.file(h) if runner.file(h).exists() else f"`make start CH={h.chapter}`"
    return [*said, tr("  next: {short} ({minutes} minutes)   {begin}", short=short(h), minutes=h.minutes, begin=begin)]
