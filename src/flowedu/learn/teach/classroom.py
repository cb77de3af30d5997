"""The workflow of GitHub Classroom for a student's tree: a step for each hole, with its points."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

HEAD = """# Written by `make student-tree`. Runs on every push: a step for each exercise.
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
STEP = """      - name: "{short} ({points} points)"
        id: hole-{dashed}
        if: success() || failure()
        timeout-minutes: 2
        run: make -s check EX={id}
"""


def workflow(holes: Iterable) -> str:
    """The text of .github/workflows/exercises.yml."""
    return HEAD + "".join(STEP.format(short=h.short.replace('"', "'"), points=h.points, id=h.id,
                                      dashed=h.id.replace(".", "-")) for h in holes)


def write(folder: Path, holes: Iterable) -> Path:
    file = folder / ".github" / "workflows" / "exercises.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(workflow(holes), encoding="utf-8")
    return file
