"""Milestone of chapters 1 to 4, `make from-scratch`: LeNet learns to read digits with all answers of a student.

    python -m flowedu.learn.scratch [--library] [--work work]

The report counts how many Python functions of core, and of the rest of the library, were the student's. It counts functions
that chapters/from_scratch.py called, from its first line to its last. Compiled functions of the library are not counted.
"""
from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

from flowedu.errors import FlowError
from flowedu.learn import course, milestone, swap
from flowedu.learn.progress import told_of
from flowedu.learn.runner import Runner

LAST, SECONDS = 4, 15                              # the last chapter whose exercises it runs; how long it takes
PACKAGE = Path(swap.__file__).parents[1]
PARTS = ("<module>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")       # code, but no functions


def holes(home: Path) -> list:
    """What it runs of a tree."""
    return [h for h in course.holes(home) if h.chapter <= LAST]


def run(runner: Runner, library: bool = False) -> int:
    """The exit status. Refuses while an exercise is open, in one line."""
    needed = holes(runner.home)
    wanted = course.Milestone("LeNet reads digits", tuple(h.id for h in needed), SECONDS)
    if not library:
        lines = milestone.missing(runner, wanted)
        names = [line.split()[0] + (" (no star yet)" if " no star yet " in line else "") for line in lines]
        if names:
            print(f"from scratch: {len(needed) - len(names)} of {len(needed)} exercises of chapters 1 to "
                  f"{needed[-1].chapter} are yours; still open: {', '.join(names)}; `make list`")
            return 1
    command = [sys.executable, "-m", "flowedu.learn.scratch", "--here", "--home", str(runner.home)]
    return milestone.started(runner, "from scratch", wanted, command, library)


# ---- in the other process
def counted(run: Callable[[], None]) -> set[CodeType]:
    """The Python functions that were called while `run` did, in all threads that it started."""
    called: set[CodeType] = set()

    def note(frame, event: str, _) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {c for c in called if c.co_name not in PARTS}


def whose(called: set[CodeType], needed: Sequence, work: Path | None) -> list[str]:
    """What was called, and whose it was."""
    inside = [c for c in called if Path(c.co_filename).is_relative_to(PACKAGE / "core")]
    beside = [c for c in called if Path(c.co_filename).is_relative_to(PACKAGE) and c not in set(inside)
              and not Path(c.co_filename).is_relative_to(PACKAGE / "learn")]
    if work is None:
        return [f"all of it the library's: {len(inside)} Python functions of core that ran, and {len(beside)} beside it"]
    named = {(c.co_filename, c.co_name) for c in called}
    theirs = {h: [n for path, n in zip(h.objects, h.functions) if (str(work / h.file), n) in named or _data(h, path)]
              for h in needed}
    core = sum(len(n) for h, n in theirs.items() if h.module.startswith("flowedu.core."))
    more = sum(map(len, theirs.values())) - core
    idle = [h.id for h, names in theirs.items() if len(names) < len(h.functions)]
    return [f"{core} of core's {len(inside) + core} Python functions that ran were yours, and {more} of the "
            f"{len(beside) + more} beside it", *(["the library's, or not called here: " + ", ".join(idle)] if idle else [])]


def _data(hole, path: str) -> bool:
    """Whether it is a field of a record that is no function: it was read when the library began, and is the student's."""
    owner, field, key = swap.target(importlib.import_module(hole.module), path)
    return hasattr(owner, "rules") and not key and not callable(getattr(owner, field)) and \
        swap.whose(f"{hole.module}.{path}").partition(": ")[2] != "the library's"


def here(home: Path) -> int:
    """The program, and then who did it."""
    status, work = [], os.environ.get("FLOWEDU_HOLES")
    called = counted(lambda: status.append(milestone.ran(home / "chapters" / "from_scratch.py")))
    if status == [0]:
        print("\n".join(whose(called, holes(home), Path(work) if work else None)))
        print("from scratch: reached")
    return status[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn.scratch", description=__doc__.splitlines()[0])
    parser.add_argument("--library", action="store_true", help="on the library's own lines")
    parser.add_argument("--work", type=Path, default=Path(os.environ.get("WORK", "work")))
    parser.add_argument("--home", type=Path, default=course.HOME, help=argparse.SUPPRESS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        return here(options.home) if options.here else run(Runner(options.home, options.work), options.library)
    except FlowError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(told_of(error, options.work), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
