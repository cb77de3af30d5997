"""Command line: `python -m flowedu.mock [--as torch] [--as oneflow] program.py args...` runs a program."""
from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from flowedu import mock
from flowedu.distributed import launch
from flowedu.mock.modules import flowedus_name


def report_from_the_program(kind: type[BaseException], error: BaseException, trace) -> None:
    """Print a traceback that starts in the program, as if Python had run it directly."""
    start = trace
    while start is not None and (start.tb_frame.f_code.co_filename in (__file__, runpy.__file__) or
                               start.tb_frame.f_code.co_filename == "<frozen runpy>"):
        start = start.tb_next
    sys.__excepthook__(kind, error.with_traceback(start or trace), start or trace)


def pass_mock_to_ranks(names: list[str], args: list[str]) -> list[str]:
    """Return the arguments of the launcher for a program whose ranks replace the same packages.

    Threads of this process use its mock. Other ranks are processes, so each runs `python -m flowedu.mock`.
    """
    options = launch.parse(args)
    if options.engine == "threads" or options.no_python:
        return args
    before = args[:len(args) - len(options.args) - 1]
    asked = [word for name in names for word in ("--as", name)]
    if options.module:
        return [*before, "flowedu.mock", *asked, "-m", options.script, *options.args]
    return [*before, "-m", "flowedu.mock", *asked, options.script, *options.args]


def main(argv: list[str] | None = None) -> None:
    """Run the program like `python program.py`, with the same exit status."""
    parser = argparse.ArgumentParser(prog="python -m flowedu.mock", description=__doc__)
    parser.add_argument("--as", dest="names", action="append", choices=mock.NAMES,
                        help="in whose place (default: both); torchvision comes with torch, flowvision with "
                        "oneflow")
    parser.add_argument("-m", dest="module", action="store_true",
                        help="the program is a module's name, as with python -m")
    parser.add_argument("program", help="a .py file")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what the program is given")
    o = parser.parse_args(argv)
    if not o.module and not Path(o.program).is_file():
        parser.error(f"cannot read {o.program}: give the path of a .py file, or -m and a module's name")
    mock.enable(*o.names or ())
    if o.module:
        o.program = flowedus_name(o.program) or o.program
        if o.program == launch.__name__:
            sys.exit(launch.main(pass_mock_to_ranks(o.names or [], o.args)))
    sys.excepthook = report_from_the_program
    sys.argv = [o.program, *o.args]
    if o.module:
        sys.path.insert(0, "")
        runpy.run_module(o.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0:1] = [str(Path(o.program).resolve().parent)]
        runpy.run_path(o.program, run_name="__main__")


if __name__ == "__main__":
    main()
