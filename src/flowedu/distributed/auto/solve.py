"""Unknowns with a few options each, a cost of every option, tables of costs between unknowns: the least sum.

Variable elimination, which is dynamic programming on any graph: an unknown is taken out by noting, for all
options of its neighbours, which of its own is best with them. On a chain the tables stay as small as pairs.
(Bertele and Brioschi, Nonserial Dynamic Programming, 1972.) Before that, options that cannot be part of a
best answer are thrown out: options without a compatible neighbour, and options dominated for every choice of
the neighbours (Goldstein, 1994).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

LARGEST = 1 << 22                # entries of a table
ROUNDS = 8                       # how often unknowns are set anew where tables would be larger


class Table(NamedTuple):
    """Costs of options together, inf where they do not fit.

    scope: the unknowns, in order. costs: an axis for each of them. of: for each the place on its axis of every option;
    options with one place are alike here.
    """

    scope: tuple[int, ...]
    costs: np.ndarray
    of: tuple[np.ndarray, ...]

    @property
    def full(self) -> np.ndarray:
        """The costs of all options."""
        return self.costs[np.ix_(*self.of)]

    def at(self, u: int, option: int) -> Table:
        """Where an unknown has this option."""
        axis = self.scope.index(u)
        out = lambda xs: (*xs[:axis], *xs[axis + 1:])
        return Table(out(self.scope), np.take(self.costs, self.of[axis][option], axis=axis), out(self.of))

    def kept(self, u: int, mask: np.ndarray) -> Table:
        """With these options of an unknown only."""
        axis = self.scope.index(u)
        used, of = np.unique(self.of[axis][mask], return_inverse=True)
        return Table(self.scope, np.take(self.costs, used, axis=axis), (*self.of[:axis], of, *self.of[axis + 1:]))


class Problem:
    """Costs.

    Args:
        alone: the cost of each option of each unknown.
        tables: costs of options of several.

    Attributes: left[u], the remaining options of unknown u (original indices); instead[u], {dominated option:
    the option that dominates it}.
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
        """numbers: of options that are left."""
        return sum(float(a[n]) for a, n in zip(self.alone, numbers)) + sum(
            float(t.costs[tuple(of[numbers[u]] for u, of in zip(t.scope, t.of))]) for t in self.tables)

    def original(self, numbers: Sequence[int]) -> list[int]:
        """The numbers that the options had at first."""
        return [int(kept[n]) for kept, n in zip(self.left, numbers)]

    def present(self, numbers: Sequence[int]) -> list[int]:
        """Convert original indices of options to indices of the remaining ones; dominated options map to
        their replacement.
        """
        found = []
        for n, kept, instead in zip(numbers, self.left, self.instead):
            while n in instead:
                n = instead[n]
            where = np.flatnonzero(kept == n)
            found.append(int(where[0]) if len(where) else 0)
        return found

    # ---- fewer options
    def _keep(self, u: int, mask: np.ndarray) -> None:
        self.alone[u], self.left[u] = self.alone[u][mask], self.left[u][mask]
        for i in self.where[u]:
            self.tables[i] = self.tables[i].kept(u, mask)

    def prune(self, late: Callable[[], bool] = lambda: False) -> None:
        """Throw out what cannot be part of a best answer. At least one option of each unknown stays."""
        entries = [sum(self.tables[i].costs.size for i in where) for where in self.where]
        waiting = dict.fromkeys(sorted(range(len(self.alone)), key=lambda u: (entries[u], u)))     # the quick ones first
        while waiting and not late():
            u = next(iter(waiting))
            del waiting[u]
            if len(self.alone[u]) > 1:
                mask = self._needed(u)
                if mask.any() and not mask.all():
                    self._keep(u, mask)
                    waiting.update(dict.fromkeys(n for i in self.where[u] for n in self.tables[i].scope))

    def _needed(self, u: int) -> np.ndarray:
        """Which options of u are not beaten."""
        mask = np.isfinite(self.alone[u])
        better = self.alone[u][:, None] - np.where(mask, self.alone[u], math.inf)[None]     # at least: of row over column
        for i in self.where[u]:
            t = self.tables[i]
            axis = t.scope.index(u)
            of, rows = t.of[axis], np.moveaxis(t.costs, axis, 0).reshape(t.costs.shape[axis], -1)
            mask &= np.isfinite(rows).any(axis=1)[of]
            with np.errstate(invalid="ignore"):        # of options that are impossible
                better += _least_difference(rows)[np.ix_(of, of)]
        for i in np.flatnonzero(mask):                 # one after the other, so that of equals one stays
            rivals = mask & (better[i] >= 0)
            rivals[i] = False
            if rivals.any():
                mask[i] = False
                self.instead[u][int(self.left[u][i])] = int(self.left[u][rivals.argmax()])
        return mask

    # ---- the least sum
    def solve(self, start: Sequence[int], largest: int = LARGEST, late: Callable[[], bool] = lambda: False,
              watched: Callable[[Sequence], Iterable] = iter) -> tuple[list[int], bool]:
        """Return the options with the least sum, and True if that is certain.

        Where tables would grow too large, some unknowns keep their options while the others are optimized;
        then other unknowns are fixed. No round increases the sum. The last is allowed `largest` entries, the
        others a sixteenth of it. late: returns True to stop; watched: shows the rounds.
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

    def eliminate(self, default: Sequence[int], often: Sequence[int], largest: int) -> tuple[list[int], list[int]]:
        """The best options if some unknowns keep their default, and which. Where that has to be, it is one that was kept
        least often, and of these one with most neighbours."""
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

        def gone(u: int) -> list[int]:
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
                mine = gone(u)
                for i in at[u]:
                    tables[i] = tables[i].at(u, default[u])
            else:
                mine = gone(u)
                scope = (*mine, u)
                total = _sum([tables[i] for i in sorted(at[u])], scope, size) + self.alone[u]
                steps.append((u, mine, total.argmin(axis=-1)))
                for i in at[u]:
                    for m in tables.pop(i).scope:
                        if m != u:
                            at[m].discard(i)
                if mine:
                    i = len(self.tables) + len(steps)
                    tables[i] = Table(tuple(mine), total.min(axis=-1), tuple(np.arange(size[m]) for m in mine))
                    for m in mine:
                        at[m].add(i)
                        around[m].update(mine)
            for m in mine:
                need[m] = math.prod(size[x] for x in around[m])
        for u, mine, best in reversed(steps):
            numbers[u] = int(best[tuple(numbers[m] for m in mine)])
        return [numbers[u] for u in range(len(size))], kept


def _least_difference(rows: np.ndarray) -> np.ndarray:
    """For each pair (i, j) of rows the least of rows[i] - rows[j]; where row i is impossible j is no worse."""
    n, found = len(rows), np.empty((len(rows), len(rows)))
    with np.errstate(invalid="ignore"):
        for i in range(n):
            d = rows[i] - rows
            d[:, np.isinf(rows[i])] = math.inf
            found[i] = d.min(axis=1)
    return found


def _sum(tables: Sequence[Table], scope: tuple[int, ...], size: Sequence[int]) -> np.ndarray:
    """The sum of tables, over all unknowns of `scope`."""
    total = np.zeros([size[m] for m in scope])
    for t in tables:
        order = sorted(range(len(t.scope)), key=lambda i: scope.index(t.scope[i]))
        total += np.transpose(t.full, order).reshape([size[m] if m in t.scope else 1 for m in scope])
    return total
