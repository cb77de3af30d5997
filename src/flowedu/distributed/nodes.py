"""`launch --nnodes n --node_rank i`: the same command started by hand on each machine.

Machine 0 listens at --master_addr:--master_port until the others have come, starts mpiexec for all of them, and tells each
how to start its part (mpiexec's `manual` launcher: no ssh). The others run that and end with machine 0's exit code.
"""
from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from flowedu.dist.comm.base import options
from flowedu.errors import ArgumentError, CommError

PROXY = "hydra_pmi_proxy"


def _say(to: socket.socket, message: dict) -> None:
    to.sendall(json.dumps(message).encode() + b"\n")


def _hear(stream) -> dict:
    line = stream.readline()
    if not line:
        raise CommError("launch: a machine went away before all had started", at="", fix="see what it printed")
    return json.loads(line)


class Gathering:
    """Machine 0's side: `hosts` once all are there, and `start`, which is given mpiexec's lines."""

    def __init__(self, o: argparse.Namespace):
        self.o, self.lines = o, []
        self.sockets: dict[int, socket.socket] = {}
        self.own: subprocess.Popen | None = None
        ranks = {0: o.nproc_per_node}
        addresses = {0: o.master_addr}
        with socket.create_server((o.master_addr, o.master_port)) as server:
            server.settimeout(options.notice)
            start = time.monotonic()
            while len(ranks) < o.nnodes:
                try:
                    s, (address, *_) = server.accept()
                except TimeoutError:
                    missing = ", ".join(map(str, sorted(set(range(o.nnodes)) - set(ranks))))
                    print(f"launch: waiting for node_rank {missing} at {o.master_addr}:{o.master_port}", file=sys.stderr,
                          flush=True)
                    if time.monotonic() - start > options.timeout:
                        raise CommError("launch: not all machines came", got=f"not node_rank {missing}", at="",
                                        fix="start the same command there, with its own --node_rank") from None
                    continue
                s.settimeout(options.timeout)
                about = _hear(s.makefile())
                node = about["node"]
                if about["nnodes"] != o.nnodes or node in ranks or not 0 < node < o.nnodes:
                    there = ", ".join(map(str, ranks))
                    _say(s, {"problem": f"this is node_rank {node} of {about['nnodes']}, but {o.nnodes} machines are "
                                        f"expected, and node_rank {there} are there"})
                    s.close()
                    continue
                ranks[node], addresses[node], self.sockets[node] = about["ranks"], address, s
        self.hosts = [(addresses[i], ranks[i]) for i in range(o.nnodes)]
        if len(set(addresses.values())) < o.nnodes:          # several on one machine: mpiexec wants different names
            self.hosts = [(f"node{i}", n) for i, (_, n) in enumerate(self.hosts)]

    def start(self, line: str) -> bool:
        """A line of mpiexec's; True: it was the last that is for machines."""
        if line.startswith("HYDRA_LAUNCH:"):
            args = shlex.split(line.partition(":")[2])[1:]
            node = int(args[args.index("--proxy-id") + 1])
            if node == 0:
                self.own = subprocess.Popen([proxy(), *args])
            else:
                _say(self.sockets[node], {"args": args})
        return line.startswith("HYDRA_LAUNCH_END")

    def end(self, code: int) -> None:
        for s in self.sockets.values():
            try:
                _say(s, {"code": code})
                s.close()
            except OSError:                                  # it has ended already
                continue


def proxy() -> str:
    """What mpiexec has run on each machine."""
    from flowedu.distributed.launch import mpiexec

    return os.path.join(os.path.dirname(mpiexec()), PROXY)


def first(o: argparse.Namespace, run: Callable) -> int:
    """Machine 0. run(hosts, start): what starts mpiexec and waits for it."""
    if o.hosts or o.hostfile:
        raise ArgumentError("launch: --hosts starts all machines from here, --nnodes is for starting each by hand", at="",
                            expected="one of them", got="both", fix="leave --nnodes away")
    gathering = Gathering(o)
    code = 1
    try:
        code = run(gathering.hosts, gathering.start)
    finally:
        gathering.end(code)
    return code


def other(o: argparse.Namespace) -> int:
    """Machine 1 and up."""
    limit = time.monotonic() + options.timeout
    while True:
        try:
            s = socket.create_connection((o.master_addr, o.master_port), timeout=10)
            break
        except OSError as error:
            if time.monotonic() > limit:
                raise CommError(f"launch: nobody answers at {o.master_addr}:{o.master_port}", got=str(error), at="",
                                fix="start it there, with --node_rank 0") from None
            time.sleep(0.2)
    with s, s.makefile() as stream:
        s.settimeout(options.timeout)
        _say(s, {"node": o.node_rank, "nnodes": o.nnodes, "ranks": o.nproc_per_node})
        answer = _hear(stream)
        if "problem" in answer:
            raise ArgumentError(f"launch: {answer['problem']}", at="", fix="a --node_rank of its own on each machine")
        subprocess.run([proxy(), *answer["args"]], check=False)
        try:
            return int(_hear(stream)["code"])
        except (CommError, OSError):
            return 1
