"""A kernel's answer is compiled and runs where it is judged: the whole of limits.judged behind walls, for it needs
compilers.

    python -m flowedu.learn.teach.shut 8.2 work/8.2_softmax.pyx SCRATCH SEED          writes SCRATCH/verdict.json

It reads the library and what compilers need, writes into SCRATCH alone and has no network. It could forge its verdict,
though: native code can do all that its process can.
"""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from flowedu.learn import course, limits
from flowedu.learn.teach.walls import shut_in

READ = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom", "/proc")


def main(arguments: Sequence[str]) -> None:
    from flowedu.learn.teach.bench import packages
    id, file, scratch, seed = arguments
    to = Path(scratch).resolve()
    hole = course.find(id)
    os.environ.update({"TMPDIR": str(to), "HOME": str(to), "FLOWEDU_CACHE": str(to / "cache"), "GRADE_SPEED":
                       os.environ.get("GRADE_SPEED", "0")})
    home = course.HOME
    shut_in([*map(Path, READ), *packages(), home / "src", home / "chapters", home / ".venv", home / "pyproject.toml",
             Path(sys.prefix), Path(sys.base_prefix)], [to, Path("/dev/null")], output=64 << 20, programs=True)
    verdict = limits.judged(hole, Path(file).resolve(), home, int(seed))
    (to / "verdict.new").write_text(json.dumps(verdict))
    (to / "verdict.new").rename(to / "verdict.json")


if __name__ == "__main__":
    main(sys.argv[1:])
