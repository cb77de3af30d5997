"""A kernel's answer is compiled and runs where it is judged: the whole of limits.judged behind walls, for it needs
compilers.

    python -m flowedu.learn.teach.seal 8.2 work/8.2_softmax.pyx SCRATCH SEED          writes SCRATCH/verdict.json

It reads the library and what compilers need, writes into SCRATCH alone and has no network. A kernel is loaded by another
process than its judge's (apart.py, simulated.py), behind walls of its own, and its numbers are compared here. What it costs
is measured there: times by a kernel's own clock, counters and faults by the simulator beside it.
"""
from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flowedu.learn import course, limits
from flowedu.learn.teach.isolation import READ, packages, shut_in


def tasks(home: Path) -> list[Path]:
    """What is handed out of the chapters; not their answers."""
    return [p for d in (home / "chapters").iterdir() if d.is_dir() for p in d.iterdir()
            if p.name not in ("answers", "right", "wrong")]


def main(arguments: Sequence[str]) -> None:
    from flowedu.cuda.sim.build import library
    id, file, scratch, seed = arguments
    to = Path(scratch).resolve()
    hole, answer = course.find(id), to / Path(file).name
    answer.write_bytes(Path(file).read_bytes())
    simulator, home = library().parent.resolve(), course.HOME
    os.environ.update({"TMPDIR": str(to), "HOME": str(to), "XDG_CACHE_HOME": str(to / "cache"), "GRADE_SPEED":
                       os.environ.get("GRADE_SPEED", "0"), "FLOWEDU_WALLS": "1"})
    tempfile.tempdir = str(to)                     # it may have looked before
    if simulator.exists():                         # a cache of its own, with what was set up before
        library().parent.parent.mkdir(parents=True)
        library().parent.symlink_to(simulator)
    shut_in([*map(Path, READ), *packages(), home / "src", *tasks(home), home / ".venv", home / "pyproject.toml", simulator,
             Path(sys.prefix), Path(sys.base_prefix)], [to, Path("/dev/null")], output=64 << 20, programs=True,
            listed=[home / "chapters"])
    verdict = limits.judged(hole, answer, home, int(seed))
    (to / "verdict.new").write_text(json.dumps(verdict), encoding="utf-8")
    (to / "verdict.new").rename(to / "verdict.json")


if __name__ == "__main__":
    main(sys.argv[1:])
