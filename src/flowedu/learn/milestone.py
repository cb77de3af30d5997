"""Milestones: a chapter's program, run on the student's own holes.

    python -m flowedu.learn milestone 4              refuses while a hole it needs is open
    python -m flowedu.learn milestone 4 --library    on the library's own lines

chapters/04_job_functions/milestone.py has a `main()` that prints a few lines and checks itself at the end: SystemExit(1)
after one clear line where it was missed. What it needs stands in chapter.toml, under [milestone].
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu.learn import course
from flowedu.learn.language import cut, padded, short, tr
from flowedu.learn.left_out import opened

PATIENCE = 20                                      # times as long as it says: then it will not end


def find(number: str, home: Path) -> course.Chapter:
    """The chapter whose milestone it is. Raises ArgumentError: it has none."""
    there = [c for c in course.chapters(home) if c.milestone is not None]
    for c in there:
        if str(c.number) == number:
            return c
    raise ArgumentError(f"chapter {number or '?'} has no milestone", got=number or "nothing",
                        expected=", ".join(str(c.number) for c in there), fix="make milestone-4, say")


def missing(runner, milestone: course.Milestone) -> list[str]:
    """A line for each hole that is still open: not begun, wrong, or a target without a star."""
    lines = []
    for id in milestone.needs:
        hole = course.find(id, runner.home)
        right, _ = runner.check(hole, fresh=False)
        row = runner.progress.row(id)
        if right and (row["stars"] or not hole.stars):
            continue
        state = tr("no star yet" if right else row["state"])
        what = f"make check EX={id}" if runner.file(hole).exists() else f"make start CH={hole.chapter}"
        lines.append(f"  {padded(cut(short(hole), 40), 40)} {padded(state, 12)} {what}")
    return lines


def _used(runner, milestone: course.Milestone) -> list[str]:
    """What runs of the student's: what it needs; where the library has stubs, all that is right as well."""
    rows = runner.progress.rows
    more = [h.id for h in runner.holes if h.withheld and h.kind != "kernel" and rows.get(h.id, {}).get("state") == "right"]
    return list(dict.fromkeys([*milestone.needs, *more]))


def run(runner, chapter: course.Chapter, library: bool = False) -> int:
    """The exit status of a chapter's program."""
    wanted = chapter.milestone
    open_ones = [] if library else missing(runner, wanted)
    if open_ones:
        print(tr("milestone {number}, {title}: it runs on holes of yours that are not filled yet", number=chapter.number,
                 title=tr(wanted.title)))
        print("\n".join(open_ones))
        return 1
    command = [sys.executable, "-m", "flowedu.learn.milestone", str(chapter.folder / "milestone.py")]
    return started(runner, tr("milestone {number}", number=chapter.number), wanted, command, library)


def started(runner, name: str, wanted: course.Milestone, command: Sequence[str], library: bool = False) -> int:
    """The exit status of a program on a student's answers, or on the library's own lines. It runs in a process of its own,
    in the folder that the command was given in."""
    env = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_HOLES", "FLOWEDU_HOLES_ONLY")}
    if not library:
        env |= {"FLOWEDU_HOLES": str(runner.work.resolve()), "FLOWEDU_HOLES_ONLY": " ".join(_used(runner, wanted))}
    print(tr("{name}: {title}   about {seconds} s", name=name, title=tr(wanted.title), seconds=wanted.seconds), flush=True)
    limit = PATIENCE * wanted.seconds
    try:
        code = subprocess.run(command, env=env, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        print(tr("{name} missed: it had not ended after {limit} s; about {seconds} are usual", name=name, limit=limit,
                 seconds=wanted.seconds))
        return 1
    except KeyboardInterrupt:
        return 130
    if code < 0:
        print(tr("{name} missed: the process was ended by {signal}", name=name, signal=signal.Signals(-code).name))
    return code


def main(arguments: Sequence[str]) -> int:
    """In the other process: the program in the file `arguments[0]`."""
    from flowedu.learn.swap import whose

    print(whose(), flush=True)
    return ran(Path(arguments[0]))


def ran(program: Path) -> int:
    """The exit status of its main(). What an answer raises there is told in a student's words, without a traceback."""
    from flowedu.learn.exercises import load
    from flowedu.learn.judge import said

    try:
        load(program).main()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if which := opened(error):
            print(f"it runs exercise {which}, too, which is open in this tree: `make start CH={which.partition('.')[0]}`")
            return 1
        files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
        work = Path(os.environ.get("FLOWEDU_HOLES", "/nowhere"))
        yours = [f for f in files if Path(f).parent == work]
        print("\n".join(said(error, Path((yours or [program])[-1]))["lines"]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
