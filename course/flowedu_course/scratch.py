"""Milestone of chapters 1 to 4, `make from-scratch`: LeNet learns digits with a student's answers.

    python -m flowedu_course scratch [--library] [--work work]

The report counts the Python functions that chapters/from_scratch.py called, in core and in the other folders
of the library, and how many of them were the student's. Compiled functions of the library are not counted.
"""
from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

from flowedu import swap
from flowedu_course import course, milestone

LAST, SECONDS = 4, 15                              # last chapter whose exercises it runs; its duration
PACKAGE = Path(swap.__file__).parents[1]
# Code objects that are not functions.
PARTS = ("<module>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


def holes(home: Path) -> list:
    """Return the holes of a tree that the program runs."""
    return [h for h in course.holes(home) if h.chapter <= LAST and not h.is_hunt]


def run(runner, library: bool = False) -> int:
    """Run the program and return its exit status, or print a line if an exercise is open."""
    needed = holes(runner.home)
    wanted = course.Milestone("LeNet reads digits", tuple(h.id for h in needed), SECONDS)
    if not library:
        lines = milestone.missing(runner, wanted)
        names = [line.split()[0] + (" (no star yet)" if " no star yet " in line else "") for line in lines]
        if names:
            print(f"from scratch: {len(needed) - len(names)} of {len(needed)} exercises of chapters 1 to "
                  f"{needed[-1].chapter} are yours; still open: {', '.join(names)}; `make list`")
            return 1
    command = [sys.executable, "-m", "flowedu_course.scratch", str(runner.home)]
    return milestone.started(runner, "from scratch", wanted, command, library)


# ---- in the other process, python -m flowedu_course.scratch HOME
def counted(run: Callable[[], None]) -> set[CodeType]:
    """Return the code of the Python functions that `run` called, in all threads that it started."""
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


def describe_calls(called: set[CodeType], needed: Sequence, work: Path | None) -> list[str]:
    """Return lines that count the student's and the library's functions among the called ones."""
    inside = [c for c in called if Path(c.co_filename).is_relative_to(PACKAGE / "core")]
    beside = [c for c in called if Path(c.co_filename).is_relative_to(PACKAGE) and c not in set(inside)
              and not Path(c.co_filename).is_relative_to(PACKAGE / "swap")]
    if work is None:
        return [f"the library's code ran: {len(inside)} Python functions in core and {len(beside)} in other "
                f"packages"]
    named = {(c.co_filename, c.co_name) for c in called}
    theirs = {h: [n for path, n in zip(h.objects, h.functions) if (str(work / h.file), n) in named
                  or _data(h, path)]
              for h in needed}
    core = sum(len(n) for h, n in theirs.items() if h.module.startswith("flowedu.core."))
    more = sum(map(len, theirs.values())) - core
    idle = [h.id for h, names in theirs.items() if len(names) < len(h.functions)]
    return [f"{core} of the {len(inside) + core} called Python functions in core were yours, and {more} of "
            f"the {len(beside) + more} in other packages",
            *(["exercises whose answers were not called: " + ", ".join(idle)] if idle else [])]


def _data(hole, path: str) -> bool:
    """Return True for a student's data field of a record, which was read on import and is never called."""
    owner, field, key = swap.target(importlib.import_module(hole.module), path)
    return hasattr(owner, "rules") and not key and not callable(getattr(owner, field)) and \
        swap.whose(f"{hole.module}.{path}").partition(": ")[2] != "the library's"


def run_here(home: Path) -> int:
    """Run the program in this process and print whose functions it called."""
    status, work = [], os.environ.get("FLOWEDU_HOLES")
    called = counted(lambda: status.append(milestone.ran(home / "chapters" / "from_scratch.py")))
    if status == [0]:
        print("\n".join(describe_calls(called, holes(home), Path(work) if work else None)))
        print("from scratch: reached")
    return status[0]


if __name__ == "__main__":
    sys.exit(run_here(Path(sys.argv[1])))
