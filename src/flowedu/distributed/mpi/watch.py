"""MPI: deadlock detection by the waiting ranks.

Each rank records the event it waits for and its progress: the number of collectives entered per group, and
the number of messages sent per rank. A rank that has waited a second sends a probe to the ranks it waits for.
A rank that gets a probe ignores it if the event has occurred. Otherwise, if the rank is waiting itself, it
forwards the probe to the ranks that *it* waits for. If a probe returns to its sender during the same wait,
there is a cycle: each rank on the path of the probe waits for the next one. (Chandy, Misra, Haas: Distributed
deadlock detection, 1983.) The detection is exact, because a rank needs all the ranks it waits for. A rank
that has finished, or is in another collective of the same group, is detected at once, without a cycle.
"""
from __future__ import annotations

import json
import sys
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowedu.distributed.ranks.base import Call
from flowedu.errors import CommError, format_location, user_line, user_place


class CollectiveEdge(NamedTuple):
    """Wait until a rank enters the collective with this number of a group."""

    group: tuple[int, ...]
    number: int


class MessageEdge(NamedTuple):
    """Wait until a rank sends the message with this number to the waiting rank."""

    number: int


Edge = CollectiveEdge | MessageEdge


class Wait(NamedTuple):
    """The call in which a rank waits, and the events it waits for.

    Attributes:
        edges: {rank: the event of that rank}.
        calls: {rank: the call with which that rank ends the wait}.
    """

    text: str
    edges: dict[int, Edge]
    calls: dict[int, Call]


class SentMessage(NamedTuple):
    """A call of send, and the user's line that made it."""

    call: Call
    place: tuple | None


class Probe(NamedTuple):
    """A message from a rank that waits to a rank that it waits for.

    Attributes:
        origin: the rank that sent the probe first.
        wait: the index of the wait of `origin`.
        round: the index of the probe of `origin`.
        path: (rank, text of its wait) of `origin` and of each rank that has forwarded the probe.
        edge: the event that the last rank of `path` waits for.
        call: the call with which the receiver ends this wait.
    """

    origin: int
    wait: int
    round: int
    path: tuple[tuple[int, str], ...]
    edge: Edge
    call: Call


class Arrival(NamedTuple):
    """The reply of a rank that is in the same collective. wait: the index of the wait of the receiver."""

    wait: int


def encode(message: Probe | Arrival) -> bytearray:
    """Return a message as JSON."""
    fields = message._asdict()
    if isinstance(message, Probe):
        fields["edge"] = message.edge._asdict()
        fields["call"] = message.call._asdict()
    return bytearray(json.dumps(fields).encode())


def decode(data: bytearray) -> Probe | Arrival:
    """Return the message that `encode` wrote, with tuples in place of JSON's lists."""
    fields = json.loads(data)
    if "origin" not in fields:
        return Arrival(**fields)

    edge, call = fields["edge"], fields["call"]
    fields["path"] = tuple((rank, text) for rank, text in fields["path"])
    if "group" in edge:
        fields["edge"] = CollectiveEdge(tuple(edge["group"]), edge["number"])
    else:
        fields["edge"] = MessageEdge(edge["number"])
    shape = None if call["shape"] is None else tuple(call["shape"])
    fields["call"] = Call(**{**call, "shape": shape, "group": tuple(call["group"])})
    return Probe(**fields)


CLOSING = Wait("has finished", {}, {})


class Watch:
    """The deadlock detection of one rank. `comm` is a communicator for probes only."""

    def __init__(self, MPI, comm):
        self.MPI, self.comm, self.rank = MPI, comm, comm.rank
        self.groups: dict = {}                                    # {ranks: Group with its latest call}
        self.sent: Counter[int] = Counter()                       # {rank: number of messages sent to it}
        self.latest: dict[int, deque[SentMessage]] = {}           # {rank: the latest of these messages}
        self.wait: Any = None                                     # a Wait while the rank waits
        self.number = self.round = 0                              # indices of this wait and of its probes
        self.here: set[int] = set()                               # ranks in the same collective
        self.seen: set[tuple] = set()
        self.posted: list[tuple] = []

    def posts(self, to: int, call: Call) -> int:
        """Record a message that is sent, and return its index."""
        self.sent[to] += 1
        message = SentMessage(call, user_place(sys._getframe()))
        self.latest.setdefault(to, deque(maxlen=16)).append(message)
        return self.sent[to]

    def begin(self, wait: Wait) -> None:
        line = "" if wait is CLOSING else user_line()
        self.wait = wait._replace(text=wait.text + (f", {line}" if line else ""))
        self.number += 1
        self.here.clear()
        self.seen.clear()

    def end(self) -> None:
        self.wait = None

    @property
    def missing(self) -> list[int]:
        """The ranks that this rank waits for and that have not reported their arrival."""
        return sorted(set(self.wait.edges) - self.here)

    # ---- probes
    def probe(self) -> None:
        """Send a new probe to the ranks that this rank waits for."""
        self.round += 1
        self._ask(self.rank, self.number, self.round, ())

    def _ask(self, origin: int, wait: int, round: int, path: Sequence[tuple[int, str]]) -> None:
        """Send a probe to the ranks that this rank waits for, and add this rank to its path."""
        path = (*path, (self.rank, self.wait.text))
        for to, edge in self.wait.edges.items():
            self._post(to, Probe(origin, wait, round, path, edge, self.wait.calls[to]))

    def _post(self, to: int, message: Probe | Arrival) -> None:
        data = encode(message)
        self.posted = [p for p in self.posted if not p[0].Test()]
        self.posted.append((self.comm.Isend([data, self.MPI.BYTE], to, 0), data))

    def poll(self) -> None:
        """Read the messages that have arrived.

        Raise CommError if they prove that this rank, or another, waits forever.
        """
        status = self.MPI.Status()
        while self.comm.Iprobe(self.MPI.ANY_SOURCE, self.MPI.ANY_TAG, status):
            data = bytearray(status.Get_count(self.MPI.BYTE))
            self.comm.Recv([data, self.MPI.BYTE], status.source, status.tag)
            message = decode(data)
            if isinstance(message, Probe):
                self._answer(status.source, message)
            elif message.wait == self.number:
                self.here.add(status.source)

    def _answer(self, sender: int, probe: Probe) -> None:
        """Reply to a probe or forward it. Raise CommError if it proves that a rank waits forever."""
        if isinstance(probe.edge, CollectiveEdge):
            is_done = self._compare_collective(sender, probe, probe.edge)
        else:
            is_done = self._compare_message(sender, probe, probe.edge)
        if not is_done:
            self._forward(probe)

    def _compare_collective(self, sender: int, probe: Probe, edge: CollectiveEdge) -> bool:
        """Return True if this rank has entered the collective. Raise CommError if its call differs."""
        group = self.groups.get(edge.group)
        entered = 0 if group is None else group.number
        if group is not None and entered == edge.number:
            problem = group.call().find_difference(probe.call)
            if problem:
                self._conclude(problem, probe, self.wait.text)

        is_done = entered >= edge.number
        if is_done and len(probe.path) == 1:
            self._post(sender, Arrival(probe.wait))
        return is_done

    def _compare_message(self, sender: int, probe: Probe, edge: MessageEdge) -> bool:
        """Return True if this rank has sent the message. Raise CommError if it has another dtype or shape."""
        later = self.sent[sender] - edge.number                   # messages sent after this one
        latest = self.latest.get(sender, ())
        if 0 <= later < len(latest):
            message = latest[-1 - later]
            problem = message.call.find_mismatch(probe.call, self.rank, sender)
            if problem:
                self._conclude(problem, probe, f"called {message.call}, {format_location(message.place)}")
        return later >= 0

    def _forward(self, probe: Probe) -> None:
        """Forward a probe to the ranks that this rank waits for. Raise CommError if none can end the wait."""
        if self.wait.text == CLOSING.text:
            self._conclude("a rank waits for one that has ended", probe, self.wait.text)
        if probe.origin == self.rank:
            if probe.wait == self.number:
                self._conclude("ranks wait for each other", probe, None)
            return

        key = (probe.origin, probe.wait, probe.round)
        if key not in self.seen:
            self.seen.add(key)
            self._ask(probe.origin, probe.wait, probe.round, probe.path)

    def _conclude(self, problem: str, probe: Probe, text: str | None) -> None:
        """Raise CommError with the waits of a probe's path.

        text: the state of this rank, or None if the path has it.
        """
        states = dict(probe.path)
        if text is not None:
            states[self.rank] = text
        lines = [f"rank {r} {states[r]}" for r in sorted(states)]
        raise CommError(problem, got="\n            ".join(lines), at="",
                        fix="every rank of a group must make the same calls, in the same order")
