"""Sandboxed judging of a kernel, which needs compilers: all of limits.judged runs in the sandbox.

    python -m flowedu_course.teach.seal 8.2 work/8.2_softmax.pyx SCRATCH SEED    writes SCRATCH/verdict.json

The sandbox reads the library and the files that compilers need, writes only to SCRATCH, and has no network.
Another process with a sandbox of its own loads the kernel (apart.py, simulated.py). This process compares its
results. The kernel's process reports times, and the simulator in it reports counters and faults.
"""
from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flowedu_course import course, limits
from flowedu_course.teach.isolation import READ, packages, shut_in


def tasks(home: Path) -> list[Path]:
    """Return the files of the chapters that are handed out, without the answers."""
    return [p for d in (home / "chapters").iterdir() if d.is_dir() for p in d.iterdir()
            if p.name not in ("answers", "right", "wrong", "mutants.toml")]


def main(arguments: Sequence[str]) -> None:
    from flowedu.cuda.sim.build import library
    id, file, scratch, seed = arguments
    to = Path(scratch).resolve()
    hole, answer = course.find(id), to / Path(file).name
    answer.write_bytes(Path(file).read_bytes())
    simulator, home = library().parent.resolve(), course.HOME
    os.environ.update({"TMPDIR": str(to), "HOME": str(to), "XDG_CACHE_HOME": str(to / "cache"), "GRADE_SPEED":
                       os.environ.get("GRADE_SPEED", "0"), "FLOWEDU_WALLS": "1"})
    tempfile.tempdir = str(to)                     # replace a cached value
    if simulator.exists():                         # link the installed simulator into the new cache
        library().parent.parent.mkdir(parents=True)
        library().parent.symlink_to(simulator)
    shut_in([*map(Path, READ), *packages(), home / "src", home / "course", *tasks(home), home / ".venv",
             home / "pyproject.toml", simulator, Path(sys.prefix), Path(sys.base_prefix)],
            [to, Path("/dev/null")], output=64 << 20, programs=True,
            listed=[home / "chapters"])
    verdict = limits.judged(hole, answer, home, int(seed))
    verdict.write(to / "verdict.json")


if __name__ == "__main__":
    main(sys.argv[1:])
