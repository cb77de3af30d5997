"""Minimization of a sum of costs: unknowns with a few options each, and tables of costs between unknowns.

Variable elimination is dynamic programming on any graph. To eliminate an unknown, its best option is stored
for each combination of its neighbours' options. On a chain, each table has only two unknowns. (Bertele and
Brioschi, Nonserial Dynamic Programming, 1972.) Before that, options that cannot be part of an optimal result
are removed: options without a compatible neighbour, and options dominated for every choice of the neighbours
(Goldstein, 1994).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

LARGEST = 1 << 22                # entries of a table
ROUNDS = 8                       # rounds of optimization if tables would be larger


class Table(NamedTuple):
    """Costs of combinations of options, inf for impossible ones.

    Attributes:
        scope: the unknowns, in order.
        costs: an array with one axis per unknown.
        of: of[i][option] is the index of an option of scope[i] along axis i of `costs`. Options with the same
            index have the same costs.
    """

    scope: tuple[int, ...]
    costs: np.ndarray
    of: tuple[np.ndarray, ...]

    @property
    def full(self) -> np.ndarray:
        """Return the costs of all options."""
        return self.costs[np.ix_(*self.of)]

    def at(self, u: int, option: int) -> Table:
        """Return the table for one option of an unknown."""
        axis = self.scope.index(u)
        scope, of = ((*xs[:axis], *xs[axis + 1:]) for xs in (self.scope, self.of))
        return Table(scope, np.take(self.costs, self.of[axis][option], axis=axis), of)

    def restrict(self, u: int, mask: np.ndarray) -> Table:
        """Return the table with a subset of the options of an unknown."""
        axis = self.scope.index(u)
        used, of = np.unique(self.of[axis][mask], return_inverse=True)
        return Table(self.scope, np.take(self.costs, used, axis=axis), (*self.of[:axis], of,
                                                                        *self.of[axis + 1:]))


class Problem:
    """The costs of unknowns and of their combinations.

    Args:
        alone: the cost of each option of each unknown.
        tables: costs of combinations of options.

    Attributes:
        left: left[u] are the remaining options of unknown u (original indices).
        instead: instead[u] is {dominated option: the option that dominates it}.
    """

    def __init__(self, alone: Sequence[Sequence[float]], tables: Sequence[Table]):
        self.alone = [np.array(a, float) for a in alone]
        self.left = [np.arange(len(a)) for a in alone]
        self.instead: list[dict[int, int]] = [{} for _ in alone]
        self.tables = list(tables)
        self.where: list[list[int]] = [[] for _ in alone]        # unknown: its tables
        for i, t in enumerate(tables):
            for u in t.scope:
                self.where[u].append(i)

    def cost(self, numbers: Sequence[int]) -> float:
        """Return the cost of an assignment of remaining options."""
        return sum(float(a[n]) for a, n in zip(self.alone, numbers)) + sum(
            float(t.costs[tuple(of[numbers[u]] for u, of in zip(t.scope, t.of))]) for t in self.tables)

    def original(self, numbers: Sequence[int]) -> list[int]:
        """Return the original indices of remaining options."""
        return [int(kept[n]) for kept, n in zip(self.left, numbers)]

    def present(self, numbers: Sequence[int]) -> list[int]:
        """Convert original indices of options to indices of the remaining ones.

        Dominated options map to their replacement.
        """
        found = []
        for n, kept, instead in zip(numbers, self.left, self.instead):
            while n in instead:
                n = instead[n]
            where = np.flatnonzero(kept == n)
            found.append(int(where[0]) if len(where) else 0)
        return found

    # ---- pruning
    def _keep(self, u: int, mask: np.ndarray) -> None:
        self.alone[u], self.left[u] = self.alone[u][mask], self.left[u][mask]
        for i in self.where[u]:
            self.tables[i] = self.tables[i].restrict(u, mask)

    def prune(self, late: Callable[[], bool] = lambda: False) -> None:
        """Remove options that cannot be part of an optimal result.

        At least one option of each unknown remains.
        """
        entries = [sum(self.tables[i].costs.size for i in where) for where in self.where]
        # Fast ones first.
        waiting = dict.fromkeys(sorted(range(len(self.alone)), key=lambda u: (entries[u], u)))
        while waiting and not late():
            u = next(iter(waiting))
            del waiting[u]
            if len(self.alone[u]) > 1:
                mask = self._needed(u)
                if mask.any() and not mask.all():
                    self._keep(u, mask)
                    waiting.update(dict.fromkeys(n for i in self.where[u] for n in self.tables[i].scope))

    def _needed(self, u: int) -> np.ndarray:
        """Return a mask of the options of u that are not dominated."""
        mask = np.isfinite(self.alone[u])
        # Lower bound of row minus column.
        better = self.alone[u][:, None] - np.where(mask, self.alone[u], math.inf)[None]
        for i in self.where[u]:
            t = self.tables[i]
            axis = t.scope.index(u)
            of, rows = t.of[axis], np.moveaxis(t.costs, axis, 0).reshape(t.costs.shape[axis], -1)
            mask &= np.isfinite(rows).any(axis=1)[of]
            with np.errstate(invalid="ignore"):        # impossible options are inf
                better += _least_difference(rows)[np.ix_(of, of)]
        for n in np.flatnonzero(mask):                 # one at a time, so that one of equal options stays
            rivals = mask & (better[n] >= 0)
            rivals[n] = False
            if rivals.any():
                mask[n] = False
                self.instead[u][int(self.left[u][n])] = int(self.left[u][rivals.argmax()])
        return mask

    # ---- the smallest sum
    def solve(self, start: Sequence[int], largest: int = LARGEST, late: Callable[[], bool] = lambda: False,
              watched: Callable[[Sequence], Iterable] = iter) -> tuple[list[int], bool]:
        """Return the options with the smallest sum, and True if the result is certainly optimal.

        If tables would grow too large, several rounds are needed. In each round some unknowns keep their
        option while the others are optimized. The next round keeps other unknowns. No round increases the
        sum.

        Args:
            start: the first assignment.
            largest: the maximum number of entries of a table in the last round. Other rounds use a sixteenth
                of it.
            late: a function that returns True to stop.
            watched: a function that wraps the list of rounds to show the progress.
        """
        numbers, often = list(start), [0] * len(self.alone)
        for limit in watched([*[largest >> 4] * ROUNDS, largest]):
            numbers, kept = self.eliminate(numbers, often, limit)
            if not kept:
                return numbers, True
            if late():
                break
            for u in kept:
                often[u] += 1
        return numbers, False

    def eliminate(self, default: Sequence[int], often: Sequence[int],
                  largest: int) -> tuple[list[int], list[int]]:
        """Return (the best options, the unknowns that kept their default option).

        An unknown is kept if the next table would be larger than `largest`. It is one that was kept least
        often in earlier rounds, and among these one with the most neighbours.
        """
        size = [len(a) for a in self.alone]
        tables = dict(enumerate(self.tables))
        at = [set(tables) for tables in self.where]
        around: list[set[int]] = [{u} for u in range(len(size))]
        for t in self.tables:
            for u in t.scope:
                around[u].update(t.scope)
        numbers: dict[int, int] = {}
        steps, kept, left = [], [], set(range(len(size)))
        need = [math.prod(size[m] for m in around[u]) for u in range(len(size))]

        def eliminate(u: int) -> list[int]:
            mine = sorted(around[u] - {u})
            left.discard(u)
            for m in mine:
                around[m].discard(u)
            return mine

        while left:
            u = min(left, key=lambda u: (need[u], u))
            if need[u] > largest:
                u = max((u for u in left if size[u] > 1), key=lambda u: (-often[u], len(around[u]), -u))
                numbers[u] = default[u]
                kept.append(u)
                mine = eliminate(u)
                for i in at[u]:
                    tables[i] = tables[i].at(u, default[u])
            else:
                mine = eliminate(u)
                scope = (*mine, u)
                total = _sum([tables[i] for i in sorted(at[u])], scope, size) + self.alone[u]
                steps.append((u, mine, total.argmin(axis=-1)))
                for i in at[u]:
                    for m in tables.pop(i).scope:
                        if m != u:
                            at[m].discard(i)
                if mine:
                    i = len(self.tables) + len(steps)
                    tables[i] = Table(tuple(mine), total.min(axis=-1),
                                      tuple(np.arange(size[m]) for m in mine))
                    for m in mine:
                        at[m].add(i)
                        around[m].update(mine)
            for m in mine:
                need[m] = math.prod(size[x] for x in around[m])
        for u, mine, best in reversed(steps):
            numbers[u] = int(best[tuple(numbers[m] for m in mine)])
        return [numbers[u] for u in range(len(size))], kept


def _least_difference(rows: np.ndarray) -> np.ndarray:
    """Return the smallest rows[i] - rows[j] for each pair (i, j) of rows, without columns where row i is inf.
    """
    n, found = len(rows), np.empty((len(rows), len(rows)))
    with np.errstate(invalid="ignore"):
        for i in range(n):
            d = rows[i] - rows
            d[:, np.isinf(rows[i])] = math.inf
            found[i] = d.min(axis=1)
    return found


def _sum(tables: Sequence[Table], scope: tuple[int, ...], size: Sequence[int]) -> np.ndarray:
    """Return the sum of tables over all unknowns of `scope`."""
    total = np.zeros([size[m] for m in scope])
    for t in tables:
        order = sorted(range(len(t.scope)), key=lambda i: scope.index(t.scope[i]))
        total += np.transpose(t.full, order).reshape([size[m] if m in t.scope else 1 for m in scope])
    return total
