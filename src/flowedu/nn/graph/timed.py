"""Where the time of a graph's first call goes. graph.report() says it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter

from flowedu.core.graph.ir import GraphValue
from flowedu.nn.graph.written import WritingCompiled

STAGES = ("trace", "derivative", "updates", "passes", "plan", "memory", "executor", "rest")


class TimedCompiled(WritingCompiled):
    """A Compiled that takes its time.

    Attributes: spent, {what: seconds} of the trace, the derivative, the updates, the first run, and of all that came before
    it; what passes, plan and executor took is in `spent` of their own graphs.
    """

    def __init__(self, owner, args: tuple, kwargs: dict):
        self.spent: dict[str, float] = {}
        with self._takes("all"):
            super().__init__(owner, args, kwargs)

    def _trace(self, args: tuple, kwargs: dict) -> None:
        with self._takes("trace"):
            super()._trace(args, kwargs)

    def differentiate(self, targets: Sequence[GraphValue], watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        with self._takes("derivative"):
            return super().differentiate(targets, watched)

    def _train(self):
        with self._takes("updates"):
            made = super()._train()
        self.spent["updates"] -= self.spent["derivative"]
        return made

    def link(self) -> None:
        with self._takes("all"):
            super().link()
        run = self.program.run

        def first(arguments: tuple) -> list:
            with self._takes("first run"):
                self.program.run = run
                return run(arguments)

        self.program.run = first

    @contextmanager
    def _takes(self, what: str) -> Iterator[None]:
        """Count the time inside the block as part of `what`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + perf_counter() - start


def told(compiled: TimedCompiled, made: Mapping[str, float]) -> list[str]:
    """Lines on the first call, in milliseconds. made: `spent` of the graph that runs."""
    own = compiled.spent
    passes = {what.removeprefix("pass "): s for what, s in made.items() if what.startswith("pass ")}
    found = {**own, **made, "passes": sum(passes.values())}
    found["rest"] = own["all"] - sum(found.get(stage, 0.0) for stage in STAGES[:-1])
    run = f" and {1e3 * own['first run']:.2f} ms to run first" if "first run" in own else ""
    return [f"time {1e3 * own['all']:.2f} ms to be made{run}",
            f"making {', '.join(f'{stage} {1e3 * found.get(stage, 0.0):.2f}' for stage in STAGES)}",
            f"passes {', '.join(f'{name} {1e3 * s:.2f}' for name, s in passes.items())}"]
