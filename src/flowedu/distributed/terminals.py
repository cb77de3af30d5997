"""Ranks that are started by hand, one in each terminal, with the variables of PyTorch and OneFlow.

    MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 python

The first function that needs the ranks waits for all of them. Each process starts `launch --nnodes` as a
child. mpiexec starts a substitute (`main` of this file) on each rank. The substitute passes its connection to
mpiexec on to the process in the terminal, which then is the rank, and ends with that process.
"""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from flowedu.distributed.ranks.base import options
from flowedu.errors import CommError

PREFIXES = ("PMI", "MPI_LOCAL")                 # variables that mpiexec sets
DONE = b"d"
MOST = 1 << 16                                  # bytes of the message with the variables
leaving = threading.Event()                     # set at the end of this process


def meeting_place(port: str, rank: str) -> Path:
    """Return the path of the socket of a rank, in a folder that only this user can write.

    Raises:
        CommError: the folder belongs to another user, or others can write it.
    """
    folder = Path("/tmp") / f"flowedu-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise CommError(f"ranks in terminals: {folder} is not safe", at="",
                        expected="a folder of yours with mode 700",
                        got=f"owner {about.st_uid}, mode {about.st_mode & 0o777:o}", fix="remove it")
    return folder / f"{port}-{rank}"


def connect(world: int) -> None:
    """Connect this process with the other terminals, so that MPI can start. Wait for all of them.

    Raises:
        CommError: a variable is missing, or not all ranks came.
    """
    words = {name: os.environ.get(name, "") for name in ("RANK", "MASTER_ADDR", "MASTER_PORT")}
    if not (words["RANK"].isdigit() and words["MASTER_PORT"].isdigit() and words["MASTER_ADDR"]
            and int(words["RANK"]) < world) or not hasattr(socket, "send_fds"):
        raise CommError(f"flow.distributed: WORLD_SIZE is {world}, but mpiexec did not start this process",
                        expected=f"the launcher, or RANK (0 to {world - 1}), MASTER_ADDR, and MASTER_PORT, "
                        f"in {world} terminals", got=", ".join(f"{n}={v}" for n, v in words.items()), at="",
                        fix=f"python -m flowedu.distributed.launch --nproc_per_node {world} script.py")
    path = meeting_place(words["MASTER_PORT"], words["RANK"])
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        server.settimeout(0.2)
        launcher = start_launcher(world, words)
        try:
            link = wait_for_substitute(server, launcher)
        finally:
            path.unlink(missing_ok=True)
    message, descriptors, *_ = socket.recv_fds(link, MOST, 1)
    os.environ.update(json.loads(message), PMI_FD=str(descriptors[0]))
    atexit.register(leave, link)
    threading.Thread(target=watch, args=(link,), daemon=True).start()


def start_launcher(world: int, words: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "flowedu.distributed.launch", "--nnodes", str(world),
               "--node_rank", words["RANK"], "--master_addr", words["MASTER_ADDR"],
               "--master_port", words["MASTER_PORT"], "--no_python",
               sys.executable, "-m", "flowedu.distributed.terminals", words["MASTER_PORT"]]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def wait_for_substitute(server: socket.socket, launcher: subprocess.Popen) -> socket.socket:
    while True:
        try:
            link = server.accept()[0]
        except TimeoutError:
            if launcher.poll() is not None:
                raise CommError("ranks in terminals: the launcher ended before all ranks came", at="",
                                got=f"exit code {launcher.returncode}",
                                fix="start all ranks, each with its own RANK and the same WORLD_SIZE, within "
                                f"{options.timeout:.0f} seconds") from None
        else:
            link.settimeout(None)
            return link


def watch(link: socket.socket) -> None:
    """End this process when its substitute ends, which happens if a rank fails or ends too early."""
    link.recv(1)
    if not leaving.is_set():
        print("ranks in terminals: a rank has failed, so all ranks end", file=sys.stderr, flush=True)
        os._exit(1)


def leave(link: socket.socket) -> None:
    """Finish MPI, and report the end of this process to the substitute."""
    leaving.set()
    MPI: Any = sys.modules.get("mpi4py.MPI")
    if MPI is not None and not MPI.Is_finalized():
        MPI.Finalize()
    with contextlib.suppress(OSError):                        # the substitute has ended
        link.sendall(DONE)


def main() -> int:
    """Pass the connection to mpiexec on to the process in the terminal, and wait until it ends."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(meeting_place(sys.argv[1], os.environ["PMI_RANK"])))
        own = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
        socket.send_fds(link, [json.dumps(own).encode()], [int(os.environ["PMI_FD"])])
        end = link.recv(1)
        link.recv(1)                           # MPI uses its connection until the process has ended
        return 0 if end == DONE else 1


if __name__ == "__main__":
    sys.exit(main())
