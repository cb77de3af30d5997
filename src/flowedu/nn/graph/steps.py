"""A graph's steps are steps of its optimizers and schedulers: counts go on, and rates become those of the next step."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Steps:
    """Work before and after each run of a graph.

    Args:
        entries: (optimizer, scheduler or None) pairs. The executor counts for the first optimizer.
    """

    def __init__(self, entries: Sequence[tuple]):
        self.made: Any = None                             # a tensor: 0 after a run that left out its step
        self.counts = [optimizer.count_.numpy() for optimizer, _ in entries]
        self.schedulers = [s for _, s in entries if s is not None]
        for scheduler in self.schedulers:                 # one that cannot work in a graph says so here
            scheduler.lr_at(0.0, 0)

    def around(self, program) -> Callable[[tuple], list]:
        """Return a wrapper of program.run."""
        plain = program.run

        def run(arguments: tuple) -> list:
            with program.lock:                            # a Ctrl-C that waits comes when the run is over: hence finally
                before = self.counts[0].item()
                try:
                    return plain(arguments)
                finally:
                    if self.counts[0].item() != before:   # else it failed
                        if self.made is not None and not self.made.item():
                            self.counts[0][0] = before
                        else:
                            self.end()
        return run if self.schedulers or len(self.counts) > 1 or self.made is not None else plain

    def end(self) -> None:
        """After a step."""
        for count in self.counts[1:]:
            count += 1
        for scheduler in self.schedulers:
            scheduler.follow_()
