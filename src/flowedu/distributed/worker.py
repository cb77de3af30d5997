"""The program that mpiexec starts on each rank.

Its command line is `python -m flowedu.distributed.worker '{options}' script args...`.
"""
from __future__ import annotations

import atexit
import faulthandler
import json
import os
import socket
import sys
from typing import Any

from flowedu.core.sbp import ranks
from flowedu.distributed import script
from flowedu.distributed.deaths import die_in_order
from flowedu.distributed.mpi.process import report, start
from flowedu.distributed.ranks.base import options

MARK = b"\x1eflowedu "              # lines for the launcher: "start" or "end", rank, process, machine


def main() -> None:
    settings, name, *args = sys.argv[1:]
    settings = json.loads(settings)
    streams: Any = sys.stdout, sys.stderr
    for stream in streams:
        stream.reconfigure(line_buffering=True, write_through=False)
    die_in_order()
    to_launcher = os.dup(2)
    faulthandler.enable(to_launcher)         # a crash prints the Python line; the launcher reads the signal
    about = f"{os.environ.get('PMI_RANK', '0')} {os.getpid()} {socket.gethostname()}\n".encode()
    os.write(to_launcher, MARK + b"start " + about)
    # After what start() registers.
    atexit.register(lambda: os.write(to_launcher, MARK + b"end " + about))
    engine = start()
    ranks._process = engine
    os.environ.update(RANK=str(engine.rank), LOCAL_RANK=str(engine.local_rank), WORLD_SIZE=str(engine.size))
    if settings["logdir"]:
        folder = os.path.join(settings["logdir"], f"local_rank_{engine.local_rank}")
        os.environ["GLOG_log_dir"] = folder                  # noqa: SIM112  (the name OneFlow gives it)
        if settings["redirect"]:
            redirect(folder)
    if settings["debug"]:
        options.debug = True
    try:
        script.arguments(name, settings["module"], args)
        code, start_with = script.load(name, settings["module"])
        module = sys.modules["__main__"] = script.main_module(start_with)
        exec(code, module.__dict__)
    except SystemExit as error:
        if number := script.exit_code(error):
            print(f"[rank {engine.rank}] exited with code {number}", file=sys.stderr)
            engine.abort(number)
    except KeyboardInterrupt:
        engine.abort(130)
    except BaseException as error:
        report(engine.rank, error, script.user_traceback(error.__traceback__))
        engine.abort(1)


def redirect(folder: str) -> None:
    """Send the output of this process, including libraries, to files stdout and stderr in `folder`."""
    os.makedirs(folder, exist_ok=True)
    for stream, number, name in ((sys.stdout, 1, "stdout"), (sys.stderr, 2, "stderr")):
        stream.flush()
        with open(os.path.join(folder, name), "wb") as file:
            os.dup2(file.fileno(), number)


if __name__ == "__main__":
    main()
