"""Details of an answer's failure, for key d of `make watch`: the full traceback, the output, each line of the judge.

    python -m flowedu.learn.traced HOME 4.3 work/4.3_place.py SEED
"""
from __future__ import annotations

import functools
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from flowedu.learn import course, judge, limits

LINES = 200                                        # of output at most: the end of it says why


def whole(runner, hole) -> list[str]:
    """What `d` shows: judged once more, in a process of its own, with the limits of a check."""
    file = runner.file(hole)
    if not file.exists():
        return [f"{hole.short}: not begun   {file}"]
    if hole.kind == "kernel":                      # no Python runs in it
        verdict = limits.judged(hole, file, runner.home, runner.seed)
        return [f"{hole.short}: {verdict['state']}   {file}", *verdict.get("output", "").splitlines(), *verdict["lines"]]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output.txt")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        env.pop("FLOWEDU_HOLES", None)
        code = limits._child("flowedu.learn.traced", (runner.home, hole.id, file, runner.seed), output, env, limits.SECONDS,
                             functools.partial(limits._limits, limits.MEMORY))
        lines = output.read_text(errors="replace", encoding="utf-8").splitlines()
        if code != 0:
            lines += limits.reason(code, "", file, "\n".join(lines), limits.SECONDS)
    left = len(lines) - LINES
    return [*([f"... {left} lines more"] if left > 0 else []), *lines[-LINES:],
            f"  to stop in it: breakpoint() there, then `DEBUG=1 make check EX={hole.id}`"]


def main(arguments: Sequence[str]) -> None:
    """In the other process: prints as it goes."""
    home, id, file, seed = arguments
    hole, raised, said = course.find(id, Path(home)), [], judge.said

    def noted(error: BaseException, file: Path) -> dict:
        raised.append("".join(traceback.format_exception(error)).rstrip())
        return said(error, file)

    judge.said = noted                             # in this process alone, whose verdict counts nowhere
    verdict = judge.judged(hole, Path(file), int(seed))
    print("\n".join([f"{hole.short}: {verdict['state']}   {file}", *raised, verdict.get("title", ""), *verdict["lines"]]))
    if not raised and verdict["state"] == "wrong":
        print("  nothing was raised: what it gives is not what it should be")


if __name__ == "__main__":
    main(sys.argv[1:])
