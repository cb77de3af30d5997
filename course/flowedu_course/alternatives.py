"""Alternative right answers in chapters/*/right, with another algorithm, another order, or recursion.

Each alternative passes its exercise alone. With all alternatives in the library at once, every exercise still
passes. This finds laws that are too weak, because an answer that they accept breaks another exercise.

    python -m flowedu_course.alternatives                all exercises
    python -m flowedu_course.alternatives 4.2 4.3        these exercises
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

from flowedu_course import course, judge, limits
from flowedu_course.install import install
from flowedu_course.laws import Verdict
from flowedu_course.teach import stubs

SECONDS = 600                                      # for all exercises in one process, on two busy cores


def files(home: Path = course.HOME) -> dict[str, list[Path]]:
    """Return {hole: its alternatives} in the order of the course."""
    return {h.id: sorted((h.folder / "right").glob(f"{h.id}_*{h.ending}")) for h in course.holes(home)}


def alone(hole, file: Path) -> list[str]:
    """Judge one answer by itself. Return a line if it is not right."""
    verdict = limits.judged(hole, file, course.HOME, seconds=30)
    return [] if verdict.state == "right" else [f"{file.name}: {_format_verdict(verdict)}"]


def together(some: Sequence[Path] | None = None, only: Sequence[str] = ()) -> list[str]:
    """Judge the exercises in a new process with all these answers in the library at once.

    some: the answers (None: the first alternative of each exercise); only: exercises to judge (empty: all).
    Returns a line for each exercise whose laws fail.
    """
    some = [of[0] for of in files().values() if of] if some is None else some
    with tempfile.TemporaryDirectory() as folder:
        for file in some:
            hole = course.find(file.name.partition("_")[0])
            shutil.copy(file, Path(folder, hole.file))
        command = [sys.executable, "-m", "flowedu_course.alternatives", "--in", folder, *only]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=SECONDS)
    last = done.stdout.splitlines()[-1:]
    if done.returncode or not last:
        return [f"the process exited with status {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}"]
    return json.loads(last[0])


def judged_in(folder: Path, only: Sequence[str] = ()) -> list[str]:
    """Install the answers of a folder in this process permanently, then judge every exercise.

    If the folder has no answer to an exercise, the library's answer is judged.
    """

    holes = [h for h in course.holes() if not h.is_separate]
    wanted = [h for h in holes if not only or h.id in only]
    with tempfile.TemporaryDirectory() as library:
        own = {h.id: Path(library, h.file) for h in wanted}
        for h in wanted:                           # laws save the library's functions on import
            own[h.id].write_text(stubs.answer_text(h), encoding="utf-8")
            importlib.import_module(f"flowedu_course.laws.{h.laws[0].partition('.')[0]}")
        install(folder, lambda h: not h.is_separate)
        found = []
        for h in wanted:
            file = Path(folder, h.file)
            with contextlib.redirect_stdout(io.StringIO()):
                verdict = judge.judged(h, file if file.exists() else own[h.id])
            if verdict.state != "right":
                whose = "its alternative" if file.exists() else "the library's code"
                found.append(f"{h.id}, {whose}, with alternatives of other exercises: "
                             f"{_format_verdict(verdict)}")
    return found


def _format_verdict(verdict: Verdict) -> str:
    lines = " / ".join(t.strip() for t in verdict.lines)
    return f"{verdict.state}, law: {verdict.law or 'none'}: {lines}"


def problems(only: Sequence[str] = ()) -> list[str]:
    """Return the failures of the alternatives, alone and together."""
    failures = []
    for id, some in files().items():
        hole = course.find(id)
        for file in some if not only or id in only else ():
            failures += alone(hole, file)
    return failures + together(only=only)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--in"]:
        print(json.dumps(judged_in(Path(arguments[1]), arguments[2:])))
        return 0
    found = problems(arguments)
    print(f"{sum(map(len, files().values()))} alternative right answers of "
          f"{sum(map(bool, files().values()))} exercises"
          + ("" if found else ": all are right, each alone and all together"))
    for line in found:
        print(f"   {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
