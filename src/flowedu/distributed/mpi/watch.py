"""MPI: deadlock detection by the waiting ranks.

Each rank records the event it waits for and its progress: the number of collectives entered per group, and
the number of messages sent per rank. A rank that has waited a second sends a probe to the ranks it waits for.
A rank that gets a probe and has done its part ignores it. A rank that has not, and is waiting itself,
forwards the probe to the ranks *it* waits for. A probe that returns to its sender, still in the same wait,
has found a cycle: each rank on its path waits for the next one. (Chandy, Misra, Haas: Distributed deadlock
detection, 1983; exact, since a rank needs all the ranks it waits for.) A rank that has finished, or is in
another collective of the same group, is detected at once, without a cycle.
"""
from __future__ import annotations

import json
import sys
from collections import Counter, deque
from typing import NamedTuple

from flowedu.distributed.ranks.base import Call
from flowedu.errors import CommError, told_line, user_line, user_place


class Wait(NamedTuple):
    """The call in which a rank waits, and the events it waits for by rank: {rank: ("collective", group,
    number) or ("message", number)}.

    calls: the call as each of those must make it.
    """

    text: str
    edges: dict[int, tuple]
    calls: dict[int, Call]


CLOSING = Wait("has finished", {}, {})


class Watch:
    """One rank's part in it. `comm`: a communicator for probes alone."""

    def __init__(self, MPI, comm):
        self.MPI, self.comm, self.rank = MPI, comm, comm.rank
        self.groups: dict = {}                                    # ranks: Group, which knows its latest call
        self.sent: Counter[int] = Counter()                       # rank: messages sent to it
        self.letters: dict[int, deque] = {}                       # rank: the latest of them, as calls and user's lines
        self.wait: Wait | None = None
        self.number = self.round = 0                              # of this wait; of its probes
        self.here: set[int] = set()                               # ranks that are in the same collective
        self.seen: set[tuple] = set()
        self.posted: list[tuple] = []

    def posts(self, to: int, call: Call) -> int:
        """Note a message that is sent, and return its number."""
        self.sent[to] += 1
        self.letters.setdefault(to, deque(maxlen=16)).append((call, user_place(sys._getframe())))
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
        """Whom this rank waits for, as far as it knows."""
        return sorted(set(self.wait.edges) - self.here)

    # ---- probes
    def probe(self) -> None:
        self.round += 1
        self._ask({"kind": "probe", "origin": self.rank, "wait": self.number, "round": self.round, "path": []})

    def _ask(self, probe: dict) -> None:
        path = [*probe["path"], [self.rank, self.wait.text]]
        for to, edge in self.wait.edges.items():
            call = self.wait.calls[to]
            self._post(to, {**probe, "path": path, "edge": edge, "call": call})

    def _post(self, to: int, message: dict) -> None:
        data = bytearray(json.dumps(message).encode())
        self.posted = [p for p in self.posted if not p[0].Test()]
        self.posted.append((self.comm.Isend([data, self.MPI.BYTE], to, 0), data))

    def poll(self) -> None:
        """Read what has come. CommError when it proves that this rank, or another, waits in vain."""
        status = self.MPI.Status()
        while self.comm.Iprobe(self.MPI.ANY_SOURCE, self.MPI.ANY_TAG, status):
            data = bytearray(status.Get_count(self.MPI.BYTE))
            self.comm.Recv([data, self.MPI.BYTE], status.source, status.tag)
            message = json.loads(bytes(data))
            if message["kind"] == "here":
                if message["wait"] == self.number:
                    self.here.add(status.source)
            else:
                self._answer(status.source, message)

    def _answer(self, sender: int, m: dict) -> None:
        theirs = Call(*m["call"])
        theirs = theirs._replace(shape=None if theirs.shape is None else tuple(theirs.shape))
        if m["edge"][0] == "collective":
            group, number = tuple(m["edge"][1]), m["edge"][2]
            g = self.groups.get(group)
            entered = 0 if g is None else g.number
            problem = g.call().find_difference(theirs) if entered == number else ""
            if problem:
                self._conclude(problem, m, self.wait.text)
            if entered >= number and len(m["path"]) == 1:
                self._post(sender, {"kind": "here", "wait": m["wait"]})
        else:
            entered, number, letters = self.sent[sender], m["edge"][1], self.letters.get(sender, ())
            back = entered - number
            sent, place = letters[-1 - back] if 0 <= back < len(letters) else (theirs, None)
            problem = sent.find_mismatch(theirs, self.rank, sender)
            if problem:
                self._conclude(problem, m, f"called {sent}, {told_line(place)}")
        if entered >= number:
            return
        if self.wait.text == CLOSING.text:
            self._conclude("a rank waits for one that has ended", m, self.wait.text)
        key = (m["origin"], m["wait"], m["round"])
        if m["origin"] == self.rank:
            if m["wait"] == self.number:
                self._conclude("ranks wait for each other", m, None)
        elif key not in self.seen:
            self.seen.add(key)
            self._ask(m)

    def _conclude(self, problem: str, m: dict, mine: str | None) -> None:
        where = dict(m["path"])
        if mine is not None:
            where[self.rank] = mine
        raise CommError(problem, got="\n            ".join(f"rank {r} {where[r]}" for r in sorted(where)), at="",
                        fix="every rank of a group must make the same calls, in the same order")
