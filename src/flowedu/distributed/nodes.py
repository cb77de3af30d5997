"""`launch --nnodes n --node_rank i`: the same command started by hand on each machine.

Machine 0 listens at --master_addr:--master_port until the others have connected, starts mpiexec for all
machines, and sends each the command for its part (mpiexec's `manual` launcher: no ssh). The others run that
command and end with machine 0's exit code. Other connections are refused without delaying the launch.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from flowedu.distributed.letters import Correspondent, NotSealed, shared_secret, without_secret
from flowedu.distributed.mpiexec import mpiexec
from flowedu.distributed.ranks.base import options
from flowedu.distributed.watcher import apart, on_signals
from flowedu.errors import ArgumentError, CommError

PROXY = "hydra_pmi_proxy"
PATIENCE = 30.0                                    # seconds until a visitor must have introduced itself
MOST = 64                                          # visitors that have not introduced themselves
MOST_RANKS = 1 << 16                               # ranks of one machine, more than it has processors


class Gathering:
    """The connections of machine 0, which listens from the start.

    `wait` returns when all machines have connected. `start` processes the lines of mpiexec.
    """

    def __init__(self, o: argparse.Namespace):
        self.o, self.secret = o, shared_secret(o.secret_file)
        self.ranks, self.addresses = {0: o.nproc_per_node}, {0: o.master_addr}
        self.nodes: dict[int, Correspondent] = {}
        self.own: subprocess.Popen | None = None
        self.ended = False
        try:
            self.server = socket.create_server((o.master_addr, o.master_port))
        except OSError as error:
            raise CommError(f"launch: cannot listen at {o.master_addr}:{o.master_port}",
                            got=str(error), at="",
                            fix="another --master_port, or the address of this machine as "
                                "--master_addr") from None
        self.server.setblocking(False)
        self.port = self.server.getsockname()[1]
        self.refused = 0

    def wait(self) -> list[tuple[str, int]]:
        """Return (machine, ranks on it) of all machines. Raise CommError after FLOWEDU_TIMEOUT seconds."""
        start = told = time.monotonic()
        with self.server, selectors.DefaultSelector() as self.waiting:
            self.waiting.register(self.server, selectors.EVENT_READ)
            while len(self.ranks) < self.o.nnodes:
                for key, _ in self.waiting.select(min(options.notice, 1.0)):
                    self._admit() if key.data is None else self._listen(*key.data)
                now = time.monotonic()
                self._forget(now - PATIENCE)
                if now - start > options.timeout:
                    raise CommError("launch: not all machines came", got=f"not node_rank {self._missing()}",
                                    at="", fix="start the same command there, with its own --node_rank")
                if now - told > options.notice:
                    told = now
                    print(f"launch: waiting for node_rank {self._missing()} at "
                          f"{self.o.master_addr}:{self.port}", file=sys.stderr, flush=True)
            self._forget(float("inf"))
        hosts = [(self.addresses[i], self.ranks[i]) for i in range(self.o.nnodes)]
        # Several on one machine: mpiexec needs different names.
        if len(set(self.addresses.values())) < self.o.nnodes:
            hosts = [(f"node{i}", n) for i, (_, n) in enumerate(hosts)]
        return hosts

    def _missing(self) -> str:
        return ", ".join(str(i) for i in range(self.o.nnodes) if i not in self.ranks)

    def _visitors(self) -> list[tuple]:
        return [key.data for key in self.waiting.get_map().values() if key.data is not None]

    def _admit(self) -> None:
        try:
            s, (address, *_) = self.server.accept()
        except OSError:                                      # it has left already
            return
        visitors = [v for v in self._visitors() if v[2] < float("inf")]
        if len(visitors) >= MOST:
            self._close(min(visitors, key=lambda v: v[2])[0])
        s.setblocking(False)
        visitor = Correspondent(s, "first", self.secret)
        self.waiting.register(s, selectors.EVENT_READ, (visitor, address, time.monotonic()))
        try:
            visitor.greet()
        except OSError:
            self._close(visitor)

    def _listen(self, visitor: Correspondent, address: str, since: float) -> None:
        """Read the data that has arrived. An error of any class ends this connection only."""
        if visitor.sock.fileno() < 0:                        # closed in this round, in favour of a newer one
            return
        try:
            stays = self._read(visitor, address)
        except BlockingIOError:
            return
        except Exception:
            stays = False
        if not stays:
            self._close(visitor)

    def _read(self, visitor: Correspondent, address: str) -> bool:
        """Answer the lines that have arrived. Return False if the connection must be closed."""
        arrived = visitor.sock.recv(1 << 12)
        if visitor in self.nodes.values():                   # it is registered and waits for the others
            self._leave(visitor)
        try:
            for line in visitor.lines(arrived):
                if not visitor.theirs:
                    visitor.greeted(line)
                elif self._welcome(visitor, address, visitor.decode(line)):
                    return True
        except NotSealed as error:
            self.refused += 1
            if self.refused <= 10:
                print(f"launch: {address} was sent away: it does not know the same FLOWEDU_SECRET",
                      file=sys.stderr, flush=True)
            visitor.say(problem=error.problem)
            return False
        return bool(arrived)

    def _welcome(self, visitor: Correspondent, address: str, about: dict) -> bool:
        """Process a machine's introduction; return True if it was expected and is now registered."""
        fields: list[Any] = [about.get(name) for name in ("node", "ranks", "nnodes")]
        node, ranks, n = fields
        if not all(type(x) is int for x in fields) or not 1 <= ranks <= MOST_RANKS:
            raise CommError("launch: the message does not describe a machine", at="")
        if n != self.o.nnodes or node in self.ranks or not 0 < node < n:
            there = ", ".join(map(str, sorted(self.ranks)))
            visitor.say(problem=f"this is node_rank {node} of {n}, but {self.o.nnodes} machines are "
                        f"expected, and node_rank {there} are there")
            raise CommError("launch: a machine too many", at="")
        visitor.sock.settimeout(options.timeout)
        visitor.say(welcome=node)
        self.waiting.modify(visitor.sock, selectors.EVENT_READ, (visitor, address, float("inf")))
        self.ranks[node], self.addresses[node], self.nodes[node] = ranks, address, visitor
        return True

    def _leave(self, visitor: Correspondent) -> None:
        node = next(i for i, v in self.nodes.items() if v is visitor)
        del self.ranks[node], self.addresses[node], self.nodes[node]
        raise CommError(f"launch: node_rank {node} went away before all had come", at="")

    def _forget(self, before: float) -> None:
        for visitor, _, since in self._visitors():
            if since < before:
                self._close(visitor)

    def _close(self, visitor: Correspondent) -> None:
        self.waiting.unregister(visitor.sock)
        visitor.sock.close()

    def start(self, line: str, stop: Callable[[], None]) -> bool:
        """Process a line of mpiexec. Return True if it was the last line for machines.

        `stop` ends mpiexec if a machine disconnects.
        """
        if line.startswith("HYDRA_LAUNCH:"):
            args = proxy_arguments(line)
            node = int(args[args.index("--proxy-id") + 1])
            if node == 0:
                self.own = apart([proxy(), *args], without_secret())
            else:
                threading.Thread(target=self._guard, args=(node, stop), daemon=True).start()
                with contextlib.suppress(OSError):           # it has disconnected: the guard reports this
                    self.nodes[node].say(args=args)
        return line.startswith("HYDRA_LAUNCH_END")

    def _guard(self, node: int, stop: Callable[[], None]) -> None:
        """Watch a machine, which sends no data before the end.

        Data or a closed connection means that it failed.
        """
        s = self.nodes[node].sock
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(s, selectors.EVENT_READ)
            selector.select()
        if not self.ended:
            print(f"launch: node_rank {node} at {self.addresses[node]} went away; all ranks end",
                  file=sys.stderr, flush=True)
            stop()

    def end(self, code: int) -> None:
        self.ended = True
        for node in self.nodes.values():
            with contextlib.suppress(OSError):               # it has ended already
                node.say(code=code)
                node.sock.shutdown(socket.SHUT_RDWR)         # also wakes its guard
            node.sock.close()


def proxy_arguments(line: str) -> list[str]:
    """Return the arguments in mpiexec's line `HYDRA_LAUNCH: PATH ARGUMENT...`.

    mpiexec does not quote the path, which may contain spaces and quotes. The arguments are numbers,
    addresses, and names.
    """
    return line.rpartition(PROXY)[2].split()


def proxy() -> str:
    """Return the command that mpiexec runs on each machine."""
    return os.path.join(os.path.dirname(mpiexec()), PROXY)


def first(o: argparse.Namespace, run: Callable) -> int:
    """Run the launcher of machine 0. run(hosts, start) starts mpiexec and waits for it."""
    if o.hosts or o.hostfile:
        raise ArgumentError("launch: --hosts starts all machines from here, --nnodes is for starting each by "
                            "hand", at="", expected="one of them", got="both", fix="leave --nnodes away")
    gathering = Gathering(o)
    if not gathering.secret and not o.master_addr.startswith(("127.", "localhost")):
        print(f"launch: whoever reaches {o.master_addr}:{o.master_port} can join: there is no FLOWEDU_SECRET",
              file=sys.stderr, flush=True)
    code = 1
    try:
        code = run(gathering.wait(), gathering.start)
    finally:
        gathering.end(code)
    return code


def other(o: argparse.Namespace) -> int:
    """Run the launcher of another machine than machine 0."""
    secret, limit = shared_secret(o.secret_file), time.monotonic() + options.timeout
    while True:
        try:
            letters = join(o, secret)
            break
        except ConnectionError as error:
            if time.monotonic() > limit:
                raise CommError(f"launch: no answer from {o.master_addr}:{o.master_port}", got=str(error),
                                at="", fix="start it there, with --node_rank 0") from None
            time.sleep(0.2)
    with letters.sock:
        part = _start_part(_args(letters))

        def leave(number: int) -> None:
            """Disconnect, so that machine 0 ends all ranks, including those of this machine.

            A second signal does not wait.
            """
            try:
                letters.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                part.kill()

        with on_signals(leave):
            part.wait()
        try:
            code = letters.decode(letters.hear()).get("code")
        except CommError:
            return 1
        return code if type(code) is int and abs(code) <= 255 else 1


def join(o: argparse.Namespace, secret: bytes) -> Correspondent:
    """Register this machine at machine 0.

    Raise ConnectionError if machine 0 does not listen, ArgumentError if it refuses the machine.
    """
    try:
        s = socket.create_connection((o.master_addr, o.master_port), timeout=options.timeout)
    except OSError as error:
        raise ConnectionError(str(error)) from None
    letters = Correspondent(s, "other", secret)
    try:
        letters.greeted(letters.hear())
        letters.greet()
        letters.say(node=o.node_rank, nnodes=o.nnodes, ranks=o.nproc_per_node)
        answer = letters.decode(letters.hear())
    except NotSealed:
        s.close()
        raise
    except (CommError, OSError) as error:                    # it ended before this machine connected
        s.close()
        raise ConnectionError(str(error).splitlines()[0]) from None
    if "welcome" not in answer:
        s.close()
        problem = str(answer.get("problem", "no place here"))[:200]
        raise ArgumentError("launch: " + "".join(c if c.isprintable() else "?" for c in problem), at="",
                            fix="a --node_rank of its own on each machine")
    return letters


def _args(letters: Correspondent) -> list[str]:
    """Return the arguments of this machine's part."""
    message = letters.decode(letters.hear())
    args = message.get("args")
    if not isinstance(args, list) or not all(isinstance(a, str) for a in args):
        raise CommError("launch: machine 0 ended before all had started", got=ascii(message)[:60], at="",
                        fix="see what it printed")
    return args


def _start_part(args: list[str]) -> subprocess.Popen:
    """Start this machine's part.

    Raise CommError if the system refuses the arguments, such as a NUL or too many bytes.
    """
    program = proxy()
    try:
        return apart([program, *args], without_secret())
    except (OSError, ValueError) as error:
        raise CommError(f"launch: cannot start {program} as machine 0 asks", got=str(error), at="",
                        fix="the same version of flowedu and mpich on all machines") from None
