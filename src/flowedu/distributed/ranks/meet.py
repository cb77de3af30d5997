"""The rendezvous of the threads of a world, and immediate detection of deadlocks.

A rank that waits needs *all* ranks it waits for. So it waits forever if one of them has ended, or if the
chain of waiting ranks leads back to it, and in no other case. Both conditions are checked whenever a rank
starts to wait or ends.
"""
from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from flowedu.distributed.ranks.base import Call, options
from flowedu.errors import CommError, format_location, user_line, user_place


class Meeting:
    """One collective of one group: the contributions of its ranks, the missing ranks, and the result."""

    def __init__(self, call: Call):
        self.call = call
        self.given: dict[int, tuple[Call, Any]] = {}
        self.needs = set(call.group)
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None


class Letter:
    """The wait of a rank for a message."""

    def __init__(self, call: Call, source: int):
        self.call, self.needs, self.done = call, {source}, False


class World:
    """The rendezvous of `size` ranks.

    Attributes:
        state: state[r] is None while rank r runs, else the call it waits for, or the way it ended.
        waits: waits[r] is None, or the list to which rank r appends its waits (Comm.record_waits).
    """

    def __init__(self, size: int):
        self.size = size
        self.lock = threading.Lock()
        self.bells = [threading.Condition(self.lock) for _ in range(size)]
        self.waits: list[list[tuple[int, int, str]] | None] = [None] * size
        self.reset()

    def reset(self) -> None:
        self.state: list = [None] * self.size
        self.threads: list[int | None] = [None] * self.size
        self.meetings: dict[tuple, Meeting] = {}
        self.mail: dict[tuple[int, int], deque] = {}
        self.failure: tuple[str, str] | None = None      # (problem, who is where)
        self.known = False                               # True if the user has seen a report

    # ---- meeting
    def meet(self, rank: int, call: Call, given=None, finish: Callable[[dict], object] | None = None):
        """Wait until every rank of the group has arrived with the same call, and return the result.

        The last rank computes it as `finish({rank: contribution})` while the others wait.
        """
        with self.lock:
            self._alive()
            m = self.meetings.get(call.group)
            if m is None:
                m = self.meetings[call.group] = Meeting(call)
            m.given[rank] = (call, given)
            m.needs.discard(rank)
            if problem := m.call.find_difference(call):
                self.state[rank] = m
                self._fail(problem, m)
            if m.needs:
                self._wait(rank, m)
            else:
                del self.meetings[call.group]
                m.needs = set()
        if m.error is not None:
            raise m.error
        if m.done:
            return m.result
        try:
            if finish is not None:
                m.result = finish({r: g for r, (_, g) in m.given.items()})
        except Exception as error:
            m.error = error
            raise
        finally:
            with self.lock:
                m.done = True
                for r in call.group:
                    if r != rank:
                        self._release(r)
        return m.result

    def post(self, rank: int, to: int, call: Call, a) -> None:
        """Leave a message for rank `to`."""
        with self.lock:
            self._alive()
            self.mail.setdefault((rank, to), deque()).append((call, a, user_place(sys._getframe())))
            waits = self.state[to]
            if isinstance(waits, Letter) and rank in waits.needs:
                waits.needs, waits.done = set(), True
                self._release(to)

    def take(self, rank: int, source: int, call: Call):
        """Return the oldest message of `source` to this rank, waiting if necessary."""
        with self.lock:
            self._alive()
            box = self.mail.setdefault((source, rank), deque())
            if not box:
                self._wait(rank, Letter(call, source))
            sent, a, place = box.popleft()
            problem = sent.find_mismatch(call, source, rank)
            if problem:
                lines = {source: f"called {sent}, {format_location(place)}",
                         rank: f"called {call}{self._at(rank)}"}
                self._fail(problem, None, "\n            ".join(f"rank {r} {lines[r]}"
                                                                for r in sorted(lines)))
        return a

    # ---- waiting
    def _alive(self) -> None:
        if self.failure is not None:
            raise self._error()

    def _error(self) -> CommError:
        problem, who = self.failure or ("", "")
        return CommError(problem, got=who, at="",
                         fix="every rank of a group must make the same calls, in the same order")

    def _release(self, rank: int) -> None:
        """Let a waiting rank continue."""
        self.state[rank] = None
        self.bells[rank].notify()

    def _wait(self, rank: int, wait) -> None:
        self.state[rank] = wait
        self.threads[rank] = threading.get_ident()
        self._check(rank)
        start, waits, begin = time.monotonic(), self.waits[rank], time.monotonic_ns()
        while not wait.done:
            if (not self.bells[rank].wait(min(options.notice, options.timeout)) and not wait.done
                and self.failure is None):
                spent = time.monotonic() - start
                missing = ", ".join(map(str, sorted(wait.needs)))
                if spent >= options.timeout:
                    self._fail(f"rank {rank} has waited {spent:.0f} s for ranks {missing} (FLOWEDU_TIMEOUT)",
                               None)
                print(f"rank {rank} has waited {spent:.0f} s in {wait.call} for ranks "
                      f"{missing}{self._at(rank)}", file=sys.stderr, flush=True)
            if self.failure is not None and not wait.done:
                raise self._error()
        self.state[rank] = None
        if waits is not None:
            call = wait.given[rank][0] if isinstance(wait, Meeting) else wait.call
            waits.append((begin, time.monotonic_ns(), str(call)))

    def _check(self, rank: int) -> None:
        """Raise an error if the rank waits forever, by following the chain of waiting ranks."""
        todo, seen = [rank], set()
        while todo:
            r = todo.pop()
            wait = self.state[r]
            if isinstance(wait, str):
                self._fail("a rank waits for one that has ended", None)
            if wait is None or wait.done or r in seen:
                continue
            seen.add(r)
            if rank in wait.needs:
                self._fail("ranks wait for each other", None)
            todo.extend(wait.needs)

    def _fail(self, problem: str, m: Meeting | None, who: str = "") -> None:
        """End all waits (the lock is held).

        `who` describes each rank, if the lines of `where` do not show it.
        """
        if self.failure is None:
            self.failure = (problem, who or self.where(m))
            for bell in self.bells:
                bell.notify_all()
        raise self._error()

    def where(self, m: Meeting | None = None) -> str:
        """Return a line for each rank: the call it waits in, or how it ended."""
        lines = []
        for r, state in enumerate(self.state):
            if isinstance(state, str):
                text = state
            elif m is not None and r in m.given:
                text = f"called {m.given[r][0]}{self._at(r)}"
            elif state is None:
                text = "is elsewhere, waiting for nobody"
            else:
                call = state.given[r][0] if isinstance(state, Meeting) else state.call
                text = f"waits in {call}{self._at(r)}"
            lines.append(f"rank {r} {text}")
        return "\n            ".join(lines)

    def _at(self, rank: int) -> str:
        """Return the user's line at which a rank is."""
        thread = self.threads[rank]
        is_here = thread is None or thread == threading.get_ident()
        line = user_line(None if thread is None or is_here else sys._current_frames().get(thread))
        return f", {line}" if line else ""

    # ---- the end of a rank
    def mark_reported(self) -> bool:
        """Return True if the failure has been reported, and mark it as reported."""
        with self.lock:
            known, self.known = self.known, True
            return known

    def stop(self, problem: str) -> None:
        """End all waits because of a problem that is not caused by a rank."""
        with self.lock:
            if self.failure is None:
                self.failure = (problem, self.where())
                for bell in self.bells:
                    bell.notify_all()

    def begin(self, rank: int) -> None:
        with self.lock:
            self.threads[rank] = threading.get_ident()

    def end(self, rank: int, error: BaseException | None = None) -> None:
        """Record that a rank has returned, or raised `error`, for the ranks that wait for it."""
        with self.lock:
            self.state[rank] = "has finished" if error is None else f"raised {type(error).__name__}: {error}"
            if self.failure is None:
                stuck = any(rank in getattr(w, "needs", ()) for w in self.state)
                if error is not None or stuck:
                    self.known = error is not None
                    self.failure = (f"rank {rank} raised {type(error).__name__}" if error is not None else
                                    "a rank waits for one that has ended", self.where())
                    for bell in self.bells:
                        bell.notify_all()
