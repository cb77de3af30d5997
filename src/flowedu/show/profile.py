"""Time of each call of a plan: `job.profile(x, y)` prints the calls, slowest first.

The time of a call is the minimum of several recorded runs (recording.py). On a GPU, each call is timed
separately.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowedu.core.graph.devices import device_name
from flowedu.show.plan import CAPS, cut


@dataclass
class Timing:
    """One call. part: "forward", "backward", or "update". nbytes: bytes that it reads and writes."""

    name: str
    op: str
    part: str
    shape: str
    seconds: float
    nbytes: int


def describe_lanes(threads: int, place: int) -> str:
    """Format the threads or the device of a run: `2 threads` or `cuda:0`."""
    return device_name(place) if place else f"{threads} thread{'s' * (threads > 1)}"


class Profile(list):
    """Timings of a plan's calls, in execution order. Prints as a table, slowest first.

    Attributes: seconds, the sum of all calls; threads, of the CPU; place, the device (Block.device).
    """

    def __init__(self, timings: Sequence[Timing], threads: int, place: int = 0):
        super().__init__(timings)
        self.place = place
        self.threads, self.seconds = threads, sum(t.seconds for t in timings)

    def by_op(self) -> dict[str, float]:
        """Return {op: seconds}, slowest first."""
        totals: dict[str, float] = {}
        for t in self:
            totals[t.op] = totals.get(t.op, 0.0) + t.seconds
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        total = max(self.seconds, 1e-12)
        lines = [f"{len(self)} calls, {1e3 * self.seconds:.3f} ms on "
                 f"{describe_lanes(self.threads, self.place)}", "",
                 f"{'op':{CAPS['op']}s} {'calls':>6s} {'ms':>9s} {'share':>6s}"]
        for op, seconds in self.by_op().items():
            calls = sum(t.op == op for t in self)
            lines.append(f"{cut(op, CAPS['op']):{CAPS['op']}s} {calls:6d} {1e3 * seconds:9.3f} "
                         f"{seconds / total:6.1%}")
        lines += ["", f"{'call':{CAPS['reads']}s} {'op':{CAPS['op']}s} {'part':9s} {'shape':>18s} {'us':>9s} "
                  f"{'GB/s':>6s}"]
        for t in sorted(self, key=lambda t: -t.seconds)[:20]:
            lines.append(f"{cut(t.name, CAPS['reads']):{CAPS['reads']}s} "
                         f"{cut(t.op, CAPS['op']):{CAPS['op']}s} {t.part:9s} {t.shape:>18s} "
                         f"{1e6 * t.seconds:9.1f} {t.nbytes / max(t.seconds, 1e-9) / 1e9:6.1f}")
        return "\n".join([*lines, *(["..."] if len(self) > 20 else [])])
