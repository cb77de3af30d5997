"""Time measurements of a graph's first call, which graph.report() prints."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter

from flowedu.core.graph.ir import GraphValue
from flowedu.nn.graph.written import WritingCompiled

STAGES = ("trace", "derivative", "updates", "passes", "plan", "memory", "executor", "rest")


class TimedCompiled(WritingCompiled):
    """Compiled graph that measures the time of its stages.

    Attributes:
        spent: {stage: seconds} of the trace, the derivative, the updates, the first run, and of everything
            before the run. The time of passes, plan, and executor is in `spent` of their own graphs.
    """

    def __init__(self, owner, args: tuple, kwargs: dict):
        self.spent: dict[str, float] = {}
        with self._measure("all"):
            super().__init__(owner, args, kwargs)

    def _trace(self, args: tuple, kwargs: dict) -> None:
        with self._measure("trace"):
            super()._trace(args, kwargs)

    def differentiate(self, targets: Sequence[GraphValue],
                      watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        with self._measure("derivative"):
            return super().differentiate(targets, watched)

    def _train(self):
        with self._measure("updates"):
            made = super()._train()
        self.spent["updates"] -= self.spent["derivative"]
        return made

    def link(self) -> None:
        with self._measure("all"):
            super().link()
        run = self.program.run

        def first(arguments: tuple) -> list:
            with self._measure("first run"):
                self.program.run = run
                return run(arguments)

        self.program.run = first

    @contextmanager
    def _measure(self, what: str) -> Iterator[None]:
        """Count the time inside the block as part of `what`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + perf_counter() - start


def format_times(compiled: TimedCompiled, made: Mapping[str, float]) -> list[str]:
    """Return lines about the first call, in milliseconds; `made` is `spent` of the graph that is run."""
    own = compiled.spent
    passes = {what.removeprefix("pass "): s for what, s in made.items() if what.startswith("pass ")}
    found = {**own, **made, "passes": sum(passes.values())}
    found["rest"] = own["all"] - sum(found.get(stage, 0.0) for stage in STAGES[:-1])
    run = f" and {1e3 * own['first run']:.2f} ms to run first" if "first run" in own else ""
    return [f"time {1e3 * own['all']:.2f} ms to be made{run}",
            f"making {', '.join(f'{stage} {1e3 * found.get(stage, 0.0):.2f}' for stage in STAGES)}",
            f"passes {', '.join(f'{name} {1e3 * s:.2f}' for name, s in passes.items())}"]
