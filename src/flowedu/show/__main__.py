"""Shows the plans of a script's jobs: `python -m flowedu.show script.py [job ...] [--memory FOLDER]`.

The script runs until it first calls a job (or asks for the variables): by then all its jobs are defined. They are
compiled, their plans are printed, and the script goes no further: nothing is trained, nothing is written.
"""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from flowedu.core.job import session as sessions
from flowedu.errors import FlowError
from flowedu.show.picture import draw_memory


class Compiled(BaseException):
    """Ends the script. Not an Exception, so that no `except Exception` of the script holds it."""


class PlanOnly(type(sessions.default_session())):
    """A session that stops where others start to run."""

    def start(self, *what: str) -> None:
        super().start(*what)
        raise Compiled


def compiled_jobs(script: str | os.PathLike, arguments: list[str] = ()) -> dict[str, object]:
    """{name: job} of all jobs that `script` defines before its first call of one, with their plans."""
    folder = str(Path(script).resolve().parent)
    old = sys.argv, sys.path[:], sessions.default_session()
    sys.argv, sys.path[0:0] = [str(script), *arguments], [folder]
    sessions.use_session(PlanOnly())
    try:
        runpy.run_path(str(script), run_name="__main__")
        if sessions.default_session().jobs:                 # all defined, none called
            sessions.default_session().start()
    except Compiled:
        pass
    finally:
        jobs = dict(sessions.default_session().jobs)
        sys.argv, sys.path[:] = old[0], old[1]
        sessions.use_session(old[2])
    return jobs


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m flowedu.show", description="Print the plans of a script's jobs.")
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
            path = draw_memory(jobs[name].plan, Path(options.memory) / f"{name}.png", jobs[name].argument_names())
            print(f"its memory over time: {path}")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
