"""The search for an assignment of a whole graph that moves the fewest bytes.

The greedy choice (core/sbp/choose.py) considers one call at a time, and keeps the layouts of variables. The
search considers the whole step, including the backward pass and the updates. It minimizes the bytes moved
plus the duplicate work: if two devices compute the same call, the work of the call (ops/axes.py, cost) is
added once. Without this term, the minimum would be that every device computes everything. Among
assignments of equal cost, the one with the smaller parts is chosen.
"""
from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.sbp.candidates import Way
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.place import Place
from flowedu.distributed.auto.model import Model, Read, Traffic
from flowedu.distributed.auto.solve import LARGEST, Problem, Table
from flowedu.distributed.graph.infer import Inference, groups

MOST = 1 << 20                   # costs of one value; with more, the cost is the sum over its readers
PATIENCE = 2.0                   # seconds until a progress bar is shown


@dataclass
class Assignment:
    """An option for each unknown.

    Attributes:
        ways: {node: signature}.
        sources: {input or variable: layout}.
        inferred: the layouts of all values under this assignment.
        work: the elements computed by more than one device.
    """

    ways: dict[Node, Way]
    sources: dict[GraphValue, Layout]
    inferred: Inference
    work: int
    ratio: float = 1.0

    @property
    def bytes(self) -> int:
        """The bytes that a step moves."""
        return self.inferred.bytes

    @property
    def cost(self) -> float:
        """The cost that the search minimizes: the bytes moved plus the duplicate work."""
        return self.bytes + self.ratio * self.work


def trained(graph: Graph) -> dict[GraphValue, list[GraphValue]]:
    """Return {parameter that an optimizer updates: its states of the same shape}."""
    found = {}
    for node in graph.nodes:
        if node.mutates and node.op.group is not None:
            for members in groups(node):
                w, *states = (node.inputs[i] for i in members if i in node.mutates)
                found[w] = [x for x in states if x.shape == w.shape]
    return found


@dataclass
class Found:
    """The result of `automatic`.

    Attributes:
        best: the cheapest assignment.
        greedy: the assignment of the greedy choice, with the given layouts of variables.
        moved: the free variables and inputs whose layout changes. Values tied to them change in the same way.
        unknowns: the number of unknowns with a choice.
        exact: True if the result is optimal.
        seconds: the time of the search.
    """

    best: Assignment
    greedy: Assignment
    moved: list[GraphValue]
    unknowns: int
    exact: bool
    seconds: float

    def describe(self, most: int = 20) -> str:
        """Describe the greedy and the automatic choice, and their differences.

        Args:
            most: the largest number of lines for nodes.
        """
        from flowedu.distributed.auto.told import describe
        return describe(self, most)


def automatic(graph: Graph, everywhere: Place, sources: Mapping[GraphValue, Layout],
              free: Mapping[GraphValue, Sequence[GraphValue]] | None = None, *, unshared: Iterable[Node] = (),
              ratio: float = 1.0,
              seconds: float = math.inf, largest: int = LARGEST, progress: bool = True) -> Found:
    """Return the cheapest assignment that is found. It never costs more than the greedy choice.

    Args:
        graph, everywhere, sources, unshared: as for Inference.
        free: {variable or input whose layout may change: values with the same layout} (`trained` returns
            them).
        ratio: the cost in bytes of computing an element twice.
        seconds: a time limit, after which the best result so far is returned. Ranks that search separately
            must not set it, because they all need the same result.
        largest: the maximum number of entries of a table. If larger tables are needed, the result may not be
            optimal.
        progress: show a progress bar on a terminal after two seconds.
    """
    search = _Search(graph, everywhere, sources, free, set(unshared), ratio, seconds, progress)
    return search.summarize(*search.run(largest))


class _Search:
    """The state of one search."""

    def __init__(self, graph, everywhere, sources, free, unshared, ratio, seconds, progress):
        self.begin, self.seconds = time.monotonic(), seconds
        self.ratio, self.progress = ratio, progress
        self.everywhere, self.graph = everywhere, graph
        self.sources, self.unshared = dict(sources), unshared
        self.greedy = Inference(graph, everywhere, sources, unshared=unshared).run(())
        taken = {r.node: r.choice.signature for r in self.greedy.rows if r.choice is not None}
        self.model = m = Model(graph, everywhere, sources, free, unshared, taken)
        self.size = [len(o) for o in m.options]
        byte = 1000 * (1 + sum(max(x.memory for x in o) for o in m.options))      # memory only breaks ties
        self.alone = [[ratio * x.work + x.memory / byte for x in o] for o in m.options]
        self.traffic = [t for t in m.traffic.values() if t.reads]
        self.of: list[list[Traffic]] = [[] for _ in self.size]
        for t in self.traffic:
            for u in self.scope(t):
                self.of[u].append(t)

    def late(self) -> bool:
        return time.monotonic() - self.begin > self.seconds

    def scope(self, t: Traffic) -> list[int]:
        """Return the unknowns that the cost of a value depends on."""
        return sorted({u for u in (t.maker, *(r.unknown for r in t.reads)) if self.size[u] > 1})

    def run(self, largest: int) -> tuple[list[int], bool]:
        """Return (indices of the options, True if the result is optimal)."""
        start = self.start()
        tables, exact = self.tables()
        problem = Problem(self.alone, tables)
        problem.prune(self.late)
        found, sure = problem.solve(problem.present(start), largest, self.late,
                                    lambda rounds: self.watched(rounds, "rounds"))
        found = problem.original(found)
        if not (exact and sure):
            found = min(map(self.improve, (found, start)), key=self.cost)
        return min((found, start), key=self.cost), exact and sure

    def start(self) -> list[int]:
        """Return the options of the greedy choice."""
        m, numbers = self.model, [0] * len(self.size)
        for row in self.greedy.rows:
            u = m.nodes.get(row.node)
            if u is not None and row.choice is not None:
                numbers[u] = next(i for i, o in enumerate(m.options[u])
                                  if o.way.signature == row.choice.signature)
        return numbers

    # ---- tables
    def tables(self) -> tuple[list[Table], bool]:
        """Return (the costs of all values, True if they are exact)."""
        found: list[Table] = []
        exact = True
        for t in self.watched(self.traffic, "layouts"):
            if self.late():
                return found, False
            one = self.table(t, self.scope(t), t.reads)
            # Too large: the cost is the sum over the readers.
            if one is None:
                for r in t.reads:
                    part = self.table(t, self.scope(Traffic(t.value, t.maker, t.own, [r])), [r])
                    if part is not None:                       # always, for one reader
                        found.append(part)
                        exact = exact and not part.costs[np.isfinite(part.costs)].any()
            else:
                found.append(one)
        return found, exact

    def watched(self, items: Sequence, what: str) -> Iterable:
        """Return the items, with a progress bar if the search is slow."""
        if not self.progress:
            return items
        from tqdm.auto import tqdm
        return tqdm(items, desc=f"{self.graph.name}: {what}", delay=PATIENCE, leave=False, disable=None)

    def table(self, t: Traffic, scope: Sequence[int], reads: Sequence[Read]) -> Table | None:
        """Return the cost of these reads of a value under all options; None if the table is too large."""
        def layouts(u, i):
            return (t.own[i] if u == t.maker else None, *(r.wanted[i] for r in reads if r.unknown == u))
        all_of = {u: [layouts(u, i) for i in range(self.size[u])] for u in {t.maker,
                                                                            *(r.unknown for r in reads)}}
        different = {u: list(dict.fromkeys(xs)) for u, xs in all_of.items()}
        scope = [u for u in scope if len(different[u]) > 1]    # the others have the same costs
        if len(reads) > 1 and math.prod(len(different[u]) for u in scope) > MOST:
            return None
        numbers = {at: i for i, at in enumerate(dict.fromkeys(
            at for xs in different.values() for x in xs for at in x if at is not None))}
        moved, legal = np.full((len(numbers),) * 2, math.inf), np.zeros((len(numbers),) * 2, bool)
        before = {x[0] for x in different[t.maker]}
        for read in reads:                                     # the possible pairs of layouts
            now = set(read.wanted)
            for a, b in itertools.product(before, now):
                i, j = numbers[a], numbers[b]
                moved[i, j], legal[i, j] = self.model.step(t.value.spec, a, b)
            before |= now if read.shared else set()

        def axis(u, slot):
            """Return the indices of the layouts in a slot of an unknown, along its axis of the table."""
            found = np.array([numbers.get(x[slot], 0) for x in different[u]])
            return found.reshape([-1 if v == u else 1 for v in scope])
        slots = dict.fromkeys(all_of, 0)
        have, total = [axis(t.maker, 0)], np.zeros([len(different[u]) for u in scope])
        for u, _, shared, forced in reads:
            slots[u] += 1
            wanted = axis(u, slots[u])
            least = functools.reduce(np.minimum, [moved[at, wanted] for at in have])
            possible = functools.reduce(np.logical_or, [legal[at, wanted] for at in have])
            total = total + np.where(possible | forced, least, math.inf)
            if shared:
                have.append(wanted)
        places = [{x: i for i, x in enumerate(different[u])} for u in scope]
        return Table(tuple(scope), total, tuple(np.array([of[x] for x in all_of[u]])
                                                for of, u in zip(places, scope)))

    # ---- the exact cost
    def cost(self, numbers: Sequence[int]) -> float:
        """Return the cost of an assignment."""
        return sum(a[n] for a, n in zip(self.alone, numbers)) + sum(self.model.bill(t, numbers)
                                                                    for t in self.traffic)

    def part(self, u: int, numbers: Sequence[int]) -> float:
        """Return the costs that depend on one unknown."""
        return self.alone[u][numbers[u]] + sum(self.model.bill(t, numbers) for t in self.of[u])

    def improve(self, numbers: Sequence[int]) -> list[int]:
        """Change single unknowns as long as this lowers the cost."""
        numbers, waiting = list(numbers), dict.fromkeys(u for u, n in enumerate(self.size) if n > 1)
        while waiting and not self.late():
            u = next(iter(waiting))
            del waiting[u]
            before, least = numbers[u], self.part(u, numbers)
            best = before
            for i in range(self.size[u]):
                numbers[u] = i
                cost = self.part(u, numbers)
                if cost < least - 1e-9:
                    best, least = i, cost
            numbers[u] = best
            if best != before:
                around = itertools.chain.from_iterable(map(self.scope, self.of[u]))
                waiting.update(dict.fromkeys(v for v in around if v != u))
        return numbers

    # ---- results
    def summarize(self, numbers: Sequence[int], exact: bool) -> Found:
        start = self.start()
        greedy = Assignment(self.ways(start), self.sources, self.greedy, self.work(start), self.ratio)
        best = self.assignment(numbers)
        moved = [v for v in self.model.kept if best.sources[v] != self.sources[v]]
        return Found(best, greedy, moved, sum(n > 1 for n in self.size), exact, time.monotonic() - self.begin)

    def ways(self, numbers: Sequence[int]) -> dict[Node, Way]:
        return {node: self.model.options[u][numbers[u]].way for node, u in self.model.nodes.items()}

    def work(self, numbers: Sequence[int]) -> int:
        return sum(o[n].work for o, n in zip(self.model.options, numbers))

    def assignment(self, numbers: Sequence[int]) -> Assignment:
        m, ways = self.model, self.ways(numbers)
        sources = dict(self.sources)
        for v, u in m.kept.items():
            sources.update(dict.fromkeys((v, *m.free[v]), m.options[u][numbers[u]].layouts[0]))
        inferred = Inference(self.graph, self.everywhere, sources, unshared=self.unshared, ways=ways).run(())
        return Assignment(ways, sources, inferred, self.work(numbers), self.ratio)
