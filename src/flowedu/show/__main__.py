"""Printer for the plans of a script's jobs: `python -m flowedu.show script.py [job ...] [--memory FOLDER]`.

The script runs until it calls a job or reads the variables for the first time. By then all its jobs are
defined. They are compiled and their plans are printed. The script does not continue, so nothing is trained.
"""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from flowedu.core.job import session as sessions
from flowedu.errors import FlowError
from flowedu.show.picture import draw_memory


class Compiled(BaseException):
    """Exception that ends the script. A BaseException, so that `except Exception` does not catch it."""


_Session: Any = type(sessions.default_session())


class PlanOnly(_Session):
    """Session that stops the script at the point where other sessions start to run."""

    def start(self, *reason: str) -> None:
        super().start(*reason)
        raise Compiled


def compiled_jobs(script: str | os.PathLike) -> dict[str, Any]:
    """Return {name: job} for the jobs that `script` defines before it first calls one. They are compiled."""
    folder = str(Path(script).resolve().parent)
    old = sys.argv, sys.path[:], sessions.default_session()
    sys.argv, sys.path[0:0] = [str(script)], [folder]
    sessions.use_session(PlanOnly())
    try:
        runpy.run_path(str(script), run_name="__main__")
        if sessions.default_session().jobs:                 # the script defines jobs but calls none
            sessions.default_session().start()
    except Compiled:
        pass
    finally:
        jobs = dict(sessions.default_session().jobs)
        sys.argv, sys.path[:] = old[0], old[1]
        sessions.use_session(old[2])
    return jobs


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m flowedu.show",
                                     description="Print the plans of a script's jobs.")
    parser.add_argument("script")
    parser.add_argument("job", nargs="*", help="names of jobs (default: all)")
    parser.add_argument("--memory", metavar="FOLDER", help="also draw each plan's memory to FOLDER/<job>.png")
    options = parser.parse_args(arguments)
    if not os.path.isfile(options.script):
        print(f"no script at {options.script}")
        return 2
    try:
        jobs = compiled_jobs(options.script)
    except FlowError as error:
        print(error)
        return 1
    if not jobs:
        print(f"{options.script} defines no job")
        return 1
    unknown = [n for n in options.job if n not in jobs]
    if unknown:
        print(f"{options.script}: no job {' or '.join(unknown)}; its jobs: {', '.join(jobs) or 'none'}")
        return 1
    for name in options.job or jobs:
        print(jobs[name].show())
        if options.memory:
            path = draw_memory(jobs[name].plan, Path(options.memory) / f"{name}.png",
                               jobs[name].argument_names())
            print(f"its memory over time: {path}")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
