"""python -m flowedu.distributed.launch [options] script.py [its arguments]: run a script on several ranks.

    --nproc_per_node k        ranks on each machine (default 1)
    --hosts a:2,b:2           machines, with their ranks if not nproc_per_node; or --hostfile, one per line.
                              mpiexec reaches them by ssh (HYDRA_LAUNCHER, HYDRA_LAUNCHER_EXEC: others)
    --nnodes n --node_rank i  instead of --hosts: start the command on each machine yourself
    --master_addr --master_port   address of machine 0 for the others; protect the port, see below
    --secret_file             a file with the secret that all machines share, instead of FLOWEDU_SECRET
    --engine threads          k threads of one process, without MPI
    --debug                   compare op, shape and dtype before each collective
    -m, --module              script is a module, as in python -m
    --no_python               script is a program, started without Python
    --logdir, --redirect_stdout_and_stderr   a folder local_rank_<i> for each rank, with files of its output

Each rank gets the environment variables RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, and MASTER_PORT. The
launcher also sets OMP_NUM_THREADS and FLOWEDU_NUM_THREADS to the number of processors divided by the ranks of
a machine, and PYTHONHASHSEED to 0, so that sets have the same order on all ranks. It keeps the values of
variables that are already set. When one rank fails, all ranks end, and the launcher exits with the code of
that rank.

Messages between the machines start programs. A secret excludes other machines. Without a secret, any machine
that reaches --master_port while machine 0 waits can join, and a machine that answers instead of machine 0 can
control the others. Nothing is encrypted. While ranks run, they and mpiexec also listen at ports. If all ranks
are on one machine, they listen only at 127.0.0.1. But mpiexec's own port, which ranks inherit, is open at all
addresses, because MPICH has no setting for it. Use machines behind a firewall, or a separate network.

A launcher that is killed by SIGKILL leaves a file of MPICH, mpich_shm_*, in /dev/shm. A later launch removes
the file if it is older than a minute, belongs to the same user, and is not mapped by any process.
"""
from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Callable

from flowedu.distributed.mpiexec import mpiexec
from flowedu.distributed.nodes import first, other
from flowedu.errors import ArgumentError, CommError

LOOPBACK = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), "") if hasattr(
    socket, "if_nameindex") else ""
# Ranks of one machine talk through memory; these keep what MPICH's networks (UCX, libfabric) listen at from
# other machines.
AT_HOME = ({"UCX_NET_DEVICES": LOOPBACK, "FI_TCP_IFACE": LOOPBACK, "FI_SOCKETS_IFACE": LOOPBACK} if LOOPBACK
           else {})

# Seconds until ranks have mapped the shared memory of MPICH.
STARTING = 60


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m flowedu.distributed.launch", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nnodes", type=int, default=1)
    p.add_argument("--node_rank", type=int, default=0)
    p.add_argument("--nproc_per_node", type=int, default=1)
    p.add_argument("--master_addr", default="127.0.0.1")
    p.add_argument("--master_port", type=int, default=29500)
    p.add_argument("--secret_file", default="")
    p.add_argument("--hosts", default="")
    p.add_argument("--hostfile", default="")
    p.add_argument("--engine", choices=("mpi", "threads"), default="mpi")
    p.add_argument("--debug", action="store_true")
    p.add_argument("-m", "--module", action="store_true")
    p.add_argument("--no_python", action="store_true")
    p.add_argument("--redirect_stdout_and_stderr", action="store_true")
    p.add_argument("--logdir", default="")
    p.add_argument("script")
    p.add_argument("args", nargs=argparse.REMAINDER)
    o = p.parse_args(argv)
    if o.nproc_per_node < 1 or o.nnodes < 1 or not 0 <= o.node_rank < o.nnodes:
        p.error("--nproc_per_node and --nnodes are 1 or more, and --node_rank is below --nnodes")
    if o.redirect_stdout_and_stderr and not o.logdir:
        o.logdir = "log"
    return o


def hosts(o: argparse.Namespace) -> list[tuple[str, int]]:
    """Return (machine, ranks on it) for all machines; an empty list means this machine alone."""
    if o.hostfile:
        with open(o.hostfile, encoding="utf-8") as f:
            words = [line.split("#")[0].split() for line in f]
        entries = [w[0] + (f":{w[1].removeprefix('slots=')}" if len(w) > 1 else "") for w in words if w]
    else:
        entries = [e for e in o.hosts.split(",") if e]
    found = []
    for entry in entries:
        name, _, n = entry.partition(":")
        if n and not (n.isdigit() and int(n)):
            raise ArgumentError("launch: not a machine", expected="name or name:ranks", got=entry, at="",
                                fix=f"{name}:2")
        found.append((name, int(n or o.nproc_per_node)))
    return found


def environment(o: argparse.Namespace, ranks: int, here: int) -> dict[str, str]:
    """Return the environment variables of each rank in addition to the launcher's."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    each = str(max(1, cores // here))
    env = {"MASTER_ADDR": o.master_addr, "MASTER_PORT": str(o.master_port), "WORLD_SIZE": str(ranks),
           "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED") or "0"}
    threads = os.environ.get("FLOWEDU_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or each
    env["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or threads
    env["FLOWEDU_NUM_THREADS"] = threads
    return env


def command(o: argparse.Namespace, machines: list[tuple[str, int]],
            by_hand: bool) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts all ranks, and additions to the environment.

    by_hand: True if each machine starts its own part.
    """
    here = max((n for _, n in machines), default=o.nproc_per_node)
    ranks = sum(n for _, n in machines) if machines else o.nproc_per_node
    env = environment(o, ranks, here)
    cmd = [mpiexec(), "-n", str(ranks)]
    if by_hand:
        cmd += ["-launcher", "manual", "-localhost", o.master_addr]
    if machines:
        cmd += ["-hosts", ",".join(f"{name}:{n}" for name, n in machines)]
        for name in ("PYTHONPATH", *(n for n in os.environ if n.startswith("FLOWEDU_"))):
            if name in os.environ and name != "FLOWEDU_SECRET":        # a command can be seen by all users
                env.setdefault(name, os.environ[name])
    else:
        env |= {name: value for name, value in AT_HOME.items() if name not in os.environ}
        cmd += ["-iface", LOOPBACK] if LOOPBACK else []
    for name, value in env.items():
        cmd += ["-genv", name, value]
    if o.no_python:
        return [*cmd, o.script, *o.args], env
    settings = {"module": o.module, "logdir": o.logdir, "redirect": o.redirect_stdout_and_stderr,
                "debug": o.debug}
    return ([*cmd, sys.executable, "-m", "flowedu.distributed.worker", json.dumps(settings), o.script,
             *o.args], env)


def main(argv: list[str] | None = None) -> int:
    o = parse(argv)
    try:
        if o.engine == "threads":
            return _threads(o)
        if not o.no_python:
            from flowedu.distributed.mpi.process import has_mpi

            try:
                has_mpi()
            except CommError:
                if o.nproc_per_node * o.nnodes > 1 or o.hosts or o.hostfile:
                    raise
                return _threads(o)                 # one rank needs no communication
        if o.node_rank:
            return other(o)
        if o.nnodes > 1:
            return first(o, lambda machines, start: _run(o, machines, start))
        return _run(o, hosts(o))
    except (ArgumentError, CommError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(o: argparse.Namespace, machines: list[tuple[str, int]], start: Callable | None = None) -> int:
    from flowedu.distributed.letters import without_secret
    from flowedu.distributed.watcher import sweep, watch

    cmd, env = command(o, machines, start is not None)
    since = time.time()
    sweep(until=since - STARTING, tries=1)         # left by killed launches
    code = watch(cmd, {**without_secret(), **env}, start)
    if code:
        sweep(since)
    return code


def _threads(o: argparse.Namespace) -> int:
    from flowedu.core.eager.dispatch import default_threads, set_num_threads
    from flowedu.distributed.threads import run

    if o.no_python or o.nnodes > 1 or o.hosts or o.hostfile or o.redirect_stdout_and_stderr:
        raise ArgumentError("launch --engine threads: the ranks are threads of one process", at="",
                            expected="a Python script on one machine",
                            got="--no_python, --nnodes, --hosts or --redirect_stdout_and_stderr",
                            fix="leave it away, or --engine mpi")
    env = environment(o, o.nproc_per_node, o.nproc_per_node)
    os.environ.update(env)
    set_num_threads(default_threads())
    if o.debug:
        from flowedu.distributed.ranks.base import options

        options.debug = True
    return run(o.nproc_per_node, o.script, o.module, o.args)


if __name__ == "__main__":
    sys.exit(main())
