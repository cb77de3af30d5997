"""Commands of the course: `make start`, `check`, `watch`, `hint`, `list`, `solution`, `milestone-4`, `from-scratch`.

They are also available as `python -m flowedu_course ...`. A student's answers are files in the folder work/;
no command writes to src/.
"""
from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from flowedu.errors import ArgumentError, FlowError
from flowedu.errors.files import write_text
from flowedu_course import course, kernels, limits, milestone, scratch, source
from flowedu_course.handout import describe_stubs, stub
from flowedu_course.language import columns, cut, describe_system_error, padded, page, short, tr
from flowedu_course.laws import Verdict
from flowedu_course.watch import watch

MARKS = {"open": " ", "wrong": "x", "right": "*"}
COMMANDS = ("start", "check", "watch", "hint", "list", "solution", "milestone", "scratch")


class Runner:
    """Chapters, a work folder, and the student's progress."""

    def __init__(self, home: Path, work: Path, seed: int = 0):
        self.home, self.work, self.seed = home, work, seed
        self.chapters = course.chapters(home)
        self.holes = [h for c in self.chapters for h in c.holes]
        self.progress = course.Progress(work)

    def file(self, hole) -> Path:
        return self.work / hole.file

    def current(self):
        """Return the first exercise that is not right, or None if all are."""
        return next((h for h in self.holes if not self._right(h.id)), None)

    def after(self, hole):
        """Return the next exercise after this one that is not right, cyclically, or None."""
        at = self.holes.index(hole)
        others = [*self.holes[at + 1:], *self.holes[:at]]
        return next((h for h in others if not self._right(h.id)), None)

    def _right(self, id: str) -> bool:
        return self.progress.row(id)["state"] == "right"

    def unmet(self, hole) -> list[str]:
        """Return the required exercises that are not right yet."""
        return [id for id in hole.first if not self._right(id) and not course.find(id, self.home).solution]

    def start(self, chapter: int = 0) -> list[str]:
        """Make missing work files for the holes of a chapter (0: the first with open holes)."""
        if not chapter:
            hole = self.current() or self.holes[0]
            chapter = hole.chapter
        mine = [h for h in self.holes if h.chapter == chapter]
        if not mine:
            there = ", ".join(str(c.number) for c in self.chapters)
            return [tr("chapter {chapter} has no exercises; chapters {there} have", chapter=chapter,
                       there=there)]
        self.work.mkdir(parents=True, exist_ok=True)
        new_files = []
        for h in mine:
            if not self.file(h).exists():
                write_text(self.file(h), stub(h, self.work))
                new_files.append(h.file)
        first = next((h for h in mine if not self._right(h.id)), mine[0])
        earlier = [h for h in self.holes if h.chapter < chapter and any(h.id in self.unmet(m) for m in mine)]
        hunts = sum(h.is_hunt for h in mine)
        return [tr("chapter {chapter}: {many} exercises in {work}/, {new} of them new", chapter=chapter,
                   many=len(mine), work=self.work, new=len(new_files)),
                *([tr("{hunts} of them are fault hunts, without points", hunts=hunts)] if hunts else []),
                *([tr("some of them need {ids} first ({minutes} minutes): `make list`",
                      ids=", ".join(h.id for h in earlier), minutes=sum(h.minutes for h in earlier))]
                  if earlier else []),
                *describe_stubs(mine),
                tr("start with {file} ({minutes} minutes), then `make check EX={id}`, or keep `make watch` "
                   "running", file=self.file(first), minutes=first.minutes, id=first.id)]

    def check(self, hole, fresh: bool = True) -> tuple[bool, list[str]]:
        """Judge an answer. Return (True if it is right, lines to print)."""
        file, row = self.file(hole), self.progress.row(hole.id)
        if not file.exists():
            return False, [tr("{short}: not begun   `make start CH={chapter}` makes {file}",
                              short=short(hole), chapter=hole.chapter, file=file)]
        key = _digest(file, hole.source, Path(limits.__file__))
        if not fresh and row["state"] == "right" and row["hash"] == key:
            return True, [self._headline(hole, tr("right") + self._stars(hole, row["stars"]))]
        if hole.is_compiled:
            kernels.set_up(hole, self.home)
        verdict = limits.judged(hole, file, self.home, self.seed, speed=os.environ.get("GRADE_SPEED") != "0")
        if verdict.state == "unjudged":
            return False, self.format_verdict(hole, verdict, file)
        row["checks"] += 1
        row["seconds"] = round(row["seconds"] + verdict.seconds, 3)
        row["state"], row["hash"] = verdict.state, key
        if verdict.state == "right":
            row["stars"] = max(row["stars"], verdict.stars)
        return verdict.state == "right", [*self.format_verdict(hole, verdict, file), *self._saved()]

    def _saved(self) -> list[str]:
        """Save the progress. Return a line if that fails."""
        try:
            self.progress.save()
        except OSError as error:
            return [tr("  the result could not be saved: {why}: {file}", why=error.strerror,
                       file=self.progress.file.name)]
        return []

    def format_verdict(self, hole, verdict: Verdict, file: Path, keys: bool = True) -> list[str]:
        """Return a verdict as at most 12 lines of 100 columns, after the lines that the answer itself printed.

        Args:
            keys: True shows the keys of `make watch`.
        """
        row = self.progress.row(hole.id)
        unmet = self.unmet(hole)
        before = []
        if unmet:
            before = [tr("  do first    {ids}: the laws call their functions, which are open in this tree",
                         ids=", ".join(unmet))]
        if verdict.state == "unjudged":
            return [self._headline(hole, tr("cannot be judged here")), *(cut(line) for line in verdict.lines)]
        if verdict.state == "open" and not verdict.lines:
            return [tr("{short}: not begun   {about}   {file}", short=short(hole), about=tr(hole.about),
                       file=file),
                    *before]
        said = [cut(f"  | {line}") for line in verdict.output.splitlines()]
        said = [tr("printed by {file}:", file=file.name), *said] if said else []
        texts = [tr(line) for line in verdict.lines]
        if verdict.state == "right":
            lines = [self._headline(hole, tr("right.") + self._stars(hole, verdict.stars)), *texts]
            lines += [tr("  h: hint")] * (keys and bool(texts))
        else:
            taken = row["hints"]
            if before and verdict.is_blocked:      # `before` says the same, and a hint would not help
                texts, keys = [], False
            lines = [self._headline(hole, tr(verdict.title)), *texts[:8 - len(before)], *before,
                     tr("  why   {page}", page=page(hole)),
                     *[tr("  h: hint {next} of {many}", next=min(taken + 1, len(hole.hints)),
                          many=len(hole.hints))] * keys]
        return said + [cut(line).rstrip() for line in lines]

    @staticmethod
    def _headline(hole, text: str) -> str:
        # The text is more important than the column.
        width = max(columns(short(hole)) + 1, min(45, 99 - columns(text)))
        return f"{padded(short(hole), width)} {text}".rstrip()

    @staticmethod
    def _stars(hole, n: int) -> str:
        told = tr("{n} of {many} stars", n=n, many=len(hole.stars))
        return f" {'*' * n} {told}".replace("  ", " ") if hole.stars else ""

    def hint(self, hole) -> list[str]:
        """Return the next hint, and count it."""
        row, many = self.progress.row(hole.id), len(hole.hints)
        if row["hints"] >= many:
            return [tr("{short}   all {many} hints", short=short(hole), many=many),
                    *(f"  {i}. {tr(text)}" for i, text in enumerate(hole.hints, 1))]
        row["hints"] += 1
        return [tr("{short}   hint {next} of {many}", short=short(hole), next=row["hints"], many=many),
                f"  {tr(hole.hints[row['hints'] - 1])}", *self._saved()]

    def list(self, fast: bool = False) -> list[str]:
        """Return the lines of all exercises; with `fast`, of one exercise per chapter."""
        out = []
        for c in self.chapters:
            shown = [h for h in c.exercises if h.id == c.fast or not fast]
            right = sum(self._right(h.id) for h in shown)
            out.append(tr("chapter {number}: {title}   {right} of {many}   about {hours} hours",
                          number=c.number,
                          title=tr(c.title), right=right, many=len(shown), hours=f"{c.hours:g}"))
            out += map(self._row, shown)
            if fast:
                continue
            if c.milestone is not None:
                out.append(tr("      then `make milestone-{number}`: {title}", number=c.number,
                              title=tr(c.milestone.title)))
            if c.hunts:
                out += [tr("      fault hunts, without points:"), *map(self._row, c.hunts)]
        return out

    def _row(self, hole) -> str:
        """Return the line of an exercise in the list."""
        kept, by = self.progress.row(hole.id), {h.id: h for h in self.holes}
        stars = "*" * kept["stars"] if hole.stars else ""
        unmet = self.unmet(hole)
        after = " ".join(i for i in unmet if not any(i in by[j].needs for j in unmet))
        more = stars or after and tr("after {ids}", ids=after)
        return tr("  [{mark}] {id} {title} {minutes} min {points} points  {more}", mark=MARKS[kept["state"]],
                  id=f"{hole.id:5s}",
                  title=padded(tr(hole.title), 48), minutes=f"{hole.minutes:3d}",
                  points=f"{hole.points:3d}", more=more).rstrip()

    def solution(self, hole, force: bool = False) -> list[str]:
        """Return the library's answer, if the exercise is right or with `force`."""
        if hole.withheld and not hole.solution:
            return [tr("{short}: this tree does not include the library's code;",
                       short=short(hole)),
                    tr("  ask your instructor for the answers; this command shows files in {folder}/",
                       folder=course.SOLUTIONS)]
        if not self._right(hole.id) and not force:
            return [tr("{short}: not right yet; FORCE=1 shows a repair anyway" if hole.is_hunt else
                       "{short}: not right yet; FORCE=1 shows the library's code anyway", short=short(hole))]
        if hole.withheld:
            return [f"# {hole.solution.relative_to(self.home)}",
                    *hole.solution.read_text(encoding="utf-8").splitlines()]
        if hole.is_separate:
            return [f"# {hole.answer_file.relative_to(self.home)}", *kernels.answer_lines(hole)]
        out, text = [], hole.source.read_text(encoding="utf-8")
        for path in hole.objects:
            out += [f"# {hole.source.relative_to(self.home)}: {path}", *source.lines(text, path), ""]
        return out[:-1]

    def bar(self, chapter: int) -> str:
        rows = [self.progress.row(h.id) for h in self.holes if h.chapter == chapter and not h.is_hunt]
        right, stars = sum(r["state"] == "right" for r in rows), sum(r["stars"] for r in rows)
        filled = round(10 * right / max(len(rows), 1))
        return tr("chapter {chapter}  [{bar}] {right} of {many}  {stars} stars", chapter=chapter, right=right,
                  many=len(rows), bar=f"{'#' * filled}{'-' * (10 - filled)}", stars=stars)


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("exercise", nargs="?", default="",
                        help="such as 4.3; for start and milestone: a chapter")
    parser.add_argument("--work", type=Path, default=Path(os.environ.get("WORK", "work")))
    parser.add_argument("--home", type=Path, default=course.HOME, help=argparse.SUPPRESS)
    parser.add_argument("--seed", default=os.environ.get("SEED") or "0")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--fast", action="store_true", help="list: one exercise per chapter")
    parser.add_argument("--library", action="store_true",
                        help="milestone, scratch: use the library's code")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except FlowError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped; nothing was lost", file=sys.stderr)
        return 130
    except BrokenPipeError:                        # such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(describe_system_error(error, options.work), file=sys.stderr)
    return 2


def _run(options: argparse.Namespace) -> int:
    runner = Runner(options.home, options.work, _number("SEED", options.seed))
    if runner.progress.note:
        print(runner.progress.note)
    if options.command == "start":
        print("\n".join(runner.start(_number("CH", options.exercise or "0"))))
        return 0
    if options.command == "list":
        print("\n".join(runner.list(options.fast)))
        return 0
    if options.command == "watch":
        return watch(runner, course.find(options.exercise, options.home) if options.exercise else None)
    if options.command == "milestone":
        return milestone.run(runner, milestone.find(options.exercise, options.home), options.library)
    if options.command == "scratch":
        return scratch.run(runner, options.library)
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
        raise ArgumentError(f"{name} is not a number", expected=f"a number, such as {name}=4",
                            got=text) from None


def _afterwards(runner: Runner, hole) -> list[str]:
    """Return the next steps after a right answer."""
    answer = tr("  a repair: `make solution EX={id}`" if hole.is_hunt else
                "  the library's code: `make solution EX={id}`", id=hole.id)
    said = [] if hole.withheld and not hole.solution else [answer]
    h = runner.after(hole)
    if h is None:
        return [*said, tr("  that was the last one")]
    begin = runner.file(h) if runner.file(h).exists() else f"`make start CH={h.chapter}`"
    later = runner.holes.index(h) > runner.holes.index(hole)
    return [*said, tr("  next: {short} ({minutes} minutes)   {begin}" if later
                      else "  still open: {short} ({minutes} minutes)   {begin}",
                      short=short(h), minutes=h.minutes, begin=begin)]
