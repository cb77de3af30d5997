"""Alternative right answers in chapters/*/right: another algorithm, another order, or recursion instead of a loop.

Each alternative passes its exercise alone. With all alternatives in the library at once, every exercise still passes. This
finds a law that accepts more than the library needs: an answer that it accepts breaks another exercise.

    python -m flowedu.learn.alternatives                all of it
    python -m flowedu.learn.alternatives 4.2 4.3        these exercises
"""
from __future__ import annotations

import contextlib
import importlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flowedu.learn import course, judge, limits
from flowedu.learn.install import install
from flowedu.learn.teach import stubs

SECONDS = 600                                      # for all exercises in one process, on two busy cores


def files(home: Path = course.HOME) -> dict[str, list[Path]]:
    """{hole: its alternatives}, in the order of the course."""
    return {h.id: sorted((h.folder / "right").glob(f"{h.id}_*{h.ending}")) for h in course.holes(home)}


def alone(hole, file: Path) -> list[str]:
    """Why this answer is not right by itself: a line, or none."""
    verdict = limits.judged(hole, file, course.HOME, seconds=30)
    return [] if verdict["state"] == "right" else [f"{file.name}: {_said(verdict)}"]


def together(some: Sequence[Path] | None = None, only: Sequence[str] = ()) -> list[str]:
    """What breaks when all these answers (None: the first of each exercise) run in the library at once: a line for each
    exercise whose laws then fail, judged in one process of its own. only: these exercises are judged."""
    some = [of[0] for of in files().values() if of] if some is None else some
    with tempfile.TemporaryDirectory() as folder:
        for file in some:
            hole = course.find(file.name.partition("_")[0])
            shutil.copy(file, Path(folder, hole.file))
        command = [sys.executable, "-m", "flowedu.learn.alternatives", "--in", folder, *only]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=SECONDS)
    last = done.stdout.splitlines()[-1:]
    if done.returncode or not last:
        return [f"the process ended by {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}"]
    return json.loads(last[0])


def judged_in(folder: Path, only: Sequence[str] = ()) -> list[str]:
    """In this process, for good: the answers of a folder take their places, then every exercise is judged, its own answer
    from the folder or the library's own lines."""

    holes = [h for h in course.holes() if h.kind != "kernel"]
    wanted = [h for h in holes if not only or h.id in only]
    with tempfile.TemporaryDirectory() as library:
        own = {h.id: Path(library, h.file) for h in wanted}
        for h in wanted:                           # before others run in its place: laws keep what they compare with
            own[h.id].write_text(stubs.answer_text(h), encoding="utf-8")
            importlib.import_module(f"flowedu.learn.laws.{h.laws[0].partition('.')[0]}")
        install(folder, lambda h: h.kind != "kernel")
        found = []
        for h in wanted:
            file = Path(folder, h.file)
            with contextlib.redirect_stdout(io.StringIO()):
                verdict = judge.judged(h, file if file.exists() else own[h.id])
            if verdict["state"] != "right":
                whose = "its alternative" if file.exists() else "the library's own lines"
                found.append(f"{h.id}, {whose}, with the alternatives of others: {_said(verdict)}")
    return found


def _said(verdict: dict[str, Any]) -> str:
    lines = " / ".join(t.strip() for t in verdict["lines"])
    return f"{verdict['state']} by {verdict['law'] or 'no law'}: {lines}"


def problems(only: Sequence[str] = ()) -> list[str]:
    """What is wrong with the alternatives, alone and together."""
    found = []
    for id, some in files().items():
        hole = course.find(id)
        for file in some if not only or id in only else ():
            found += alone(hole, file)
    return found + together(only=only)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--in"]:
        print(json.dumps(judged_in(Path(arguments[1]), arguments[2:])))
        return 0
    found = problems(arguments)
    print(f"{sum(map(len, files().values()))} alternative right answers of {sum(map(bool, files().values()))} exercises"
          + ("" if found else ": right alone, and together"))
    for line in found:
        print(f"   {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
