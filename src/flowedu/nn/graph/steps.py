"""Steps of the optimizers and schedulers of a graph, which each run of the graph makes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Steps:
    """Work before and after each run of a graph.

    Args:
        entries: (optimizer, scheduler or None) pairs. The executor counts the steps of the first optimizer.
    """

    def __init__(self, entries: Sequence[tuple]):
        self.made: Any = None                             # a tensor, 0 after a run that skipped its step
        self.counts = [optimizer.count_.numpy() for optimizer, _ in entries]
        self.schedulers = [s for _, s in entries if s is not None]
        for scheduler in self.schedulers:                 # raises for schedulers that cannot work in a graph
            scheduler.lr_at(0.0, 0)

    def around(self, program) -> Callable[[tuple], list]:
        """Return a function that runs the program and then makes the steps."""
        plain = program.run

        def run(arguments: tuple) -> list:
            # a pending Ctrl-C is raised after the run, hence finally
            with program.lock:
                before = self.counts[0].item()
                try:
                    return plain(arguments)
                finally:
                    if self.counts[0].item() != before:   # otherwise it failed
                        if self.made is not None and not self.made.item():
                            self.counts[0][0] = before
                        else:
                            self.end()
        return run if self.schedulers or len(self.counts) > 1 or self.made is not None else plain

    def end(self) -> None:
        """Count a step of the other optimizers, and make a step of the schedulers."""
        for count in self.counts[1:]:
            count += 1
        for scheduler in self.schedulers:
            scheduler.follow_()
