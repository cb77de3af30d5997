"""Milestones: a chapter's program, run on the student's own answers.

    python -m flowedu_course milestone 4              refuses while a hole it needs is open
    python -m flowedu_course milestone 4 --library    on the library's own lines

chapters/04_job_functions/milestone.py has a `main()` that prints a few lines and checks the result. If the
milestone is missed, it prints one line and raises SystemExit(1). [milestone] in chapter.toml lists the
exercises that it needs.
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
from flowedu_course import course
from flowedu_course.language import cut, padded, short, tr
from flowedu_course.left_out import describe_code, opened

PATIENCE = 20                                      # time limit, as a multiple of the stated duration


def find(number: str, home: Path) -> course.Chapter:
    """Return the chapter with this number. Raises ArgumentError if it has no milestone."""
    chapters = [c for c in course.chapters(home) if c.milestone is not None]
    for c in chapters:
        if str(c.number) == number:
            return c
    raise ArgumentError(f"chapter {number or '?'} has no milestone", got=number or "nothing",
                        expected=", ".join(str(c.number) for c in chapters), fix="make milestone-4")


def missing(runner, milestone: course.Milestone) -> list[str]:
    """Return a line for each hole that is still open: not begun, wrong, or a target without a star."""
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
    """Return the holes whose answers run.

    These are the needed holes, the other right kernels of their chapter, and holes that are stubs in the
    library and have a right answer or one in solutions/.
    """
    rows, last = runner.progress.rows, max((course.find(id).chapter for id in milestone.needs), default=0)
    right = [h for h in runner.holes if rows.get(h.id, {}).get("state") == "right" or h.solution]
    more = [h.id for h in right
            if h.withheld and not h.is_separate or h.kind == "kernel" and h.chapter == last]
    return list(dict.fromkeys([*milestone.needs, *more]))


def run(runner, chapter: course.Chapter, library: bool = False) -> int:
    """Run a chapter's milestone program and return its exit status."""
    wanted = chapter.milestone
    open_ones = [] if library else missing(runner, wanted)
    if open_ones:
        print(tr("milestone {number}, {title}: it needs exercises that are still open", number=chapter.number,
                 title=tr(wanted.title)))
        print("\n".join(open_ones))
        return 1
    command = [sys.executable, "-m", "flowedu_course.milestone", str(chapter.folder / "milestone.py")]
    return started(runner, tr("milestone {number}", number=chapter.number), wanted, command, library)


def started(runner, name: str, wanted: course.Milestone, command: Sequence[str],
            library: bool = False) -> int:
    """Run a program in a separate process, with a student's or the library's answers. Return its status."""
    env = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_HOLES", "FLOWEDU_HOLES_ONLY")}
    if not library:
        env |= {"FLOWEDU_HOLES": str(runner.work.resolve()),
                "FLOWEDU_HOLES_ONLY": " ".join(_used(runner, wanted))}
    print(tr("{name}: {title}   about {seconds} s", name=name, title=tr(wanted.title),
             seconds=wanted.seconds), flush=True)
    limit = PATIENCE * wanted.seconds
    try:
        code = subprocess.run(command, env=env, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        print(tr("{name} missed: not finished after {limit} s; it usually takes about {seconds} s", name=name,
                 limit=limit, seconds=wanted.seconds))
        return 1
    except KeyboardInterrupt:
        return 130
    if code < 0:
        print(tr("{name} missed: the process was ended by {signal}", name=name,
                 signal=signal.Signals(-code).name))
    return code


def main(arguments: Sequence[str]) -> int:
    """Run the program in the file `arguments[0]`, in the separate process."""
    print(describe_code(), flush=True)
    return ran(Path(arguments[0]))


def ran(program: Path) -> int:
    """Run main() of a program and return its exit status. Print errors of answers without a traceback."""
    from flowedu_course.exercises import load
    from flowedu_course.judge import error_lines

    try:
        load(program).main()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if which := opened(error):
            print(f"the program also needs exercise {which}, which is open in this tree: `make start "
                  f"CH={which.partition('.')[0]}`")
            return 1
        files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
        work = Path(os.environ.get("FLOWEDU_HOLES", "/nowhere"))
        yours = [f for f in files if Path(f).parent == work]
        print("\n".join(error_lines(error, Path((yours or [program])[-1]))))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
