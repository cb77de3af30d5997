"""Laws of the fault hunts in Python, whose programs take and return arrays and numbers."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowedu_course.laws import Law, counted, holds, where_differ


def _equal(draw: Callable, told: Callable, given: Callable, names: Sequence[str], right: Callable) -> Law:
    """Return the law that a program returns the values `names`, which right(*given(case)) computes."""
    def judge(case: Any, yours: Callable) -> list[str] | None:
        want, got = right(*given(case)), yours(*given(case))
        if lines := counted(got, names):
            return lines
        differences = (where_differ(n, np.asarray(a), np.asarray(b)) for n, a, b in zip(names, got, want))
        return next(filter(None, differences), None)
    return Law("values equal NumPy's", draw, judge, cases=12, told=told)


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- 2.h1
def _draw_points(rng: random.Random, size: int) -> tuple[int, int, int]:
    return rng.randint(2, 2 + size), rng.randint(1, size), rng.randint(1, 10 * size)


def _points(case: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, int]:
    n, k, steps = case
    return _normal(n, n, k), _normal(k, n), steps


def _fit(x: np.ndarray, y: np.ndarray, steps: int) -> tuple[np.ndarray, float, float]:
    w, b, loss = np.zeros(x.shape[1]), 0.0, 0.0
    for _ in range(steps):
        error = x @ w + b - y
        loss = float((error ** 2).mean())
        w, b = w - 0.2 * x.T @ error / len(y), b - 0.2 * error.mean()
    return w, b, loss


fit_values = _equal(_draw_points, lambda case: "{} points with {} features, {} steps".format(*case), _points,
                    ("w", "b", "loss"), _fit)


# ---- 2.h2
def _rows(case: tuple[int, int]) -> tuple[np.ndarray, ...]:
    n, k = case
    return _normal(n, n, k), _normal(k, k), _normal(n + k, n, k)


def _norm_gradients(x: np.ndarray, scale: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    deviation = np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normal, dnormal = (x - x.mean(1, keepdims=True)) / deviation, dy * scale
    along = (dnormal * normal).mean(1, keepdims=True)
    return (dnormal - dnormal.mean(1, keepdims=True) - along * normal) / deviation, (dy * normal).sum(0)


norm_values = _equal(lambda rng, size: (rng.randint(1, size), rng.randint(2, 2 + size)),
                     lambda case: f"x {case}, scale and dy random", _rows, ("dx", "dscale"),
                     _norm_gradients)


# ---- 2.h3
def _step(x: np.ndarray, y: np.ndarray, w: np.ndarray, total: float) -> tuple[np.ndarray, float]:
    error = x @ w - y
    return w - 0.1 * x.T @ error / len(y), total + float((error ** 2).mean())


def _state(case: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    n, k, total = case
    return _normal(n, n, k), _normal(k, n), _normal(total, k), float(total)


def _describe_state(case: tuple[int, int, int]) -> str:
    return "{} points with {} features, total {}".format(*case)


step_values = _equal(_draw_points, _describe_state, _state, ("w", "total"), _step)


# A total that is a tensor without history keeps no calls, so it is accepted.
@holds("the total has no history", _draw_points, cases=2, told=_describe_state)
def step_tape(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    _, total = yours(*_state(case))
    if not getattr(total, "requires_grad", False):
        return None
    return ["  yours           the total can be differentiated, so the tape keeps its calls"]


# ---- 4.h1
def _line(case: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, int]:
    x, y, steps = _points(case)
    return x, y[:, None], steps


def _descend(x: np.ndarray, y: np.ndarray, steps: int) -> tuple[np.ndarray]:
    w = np.zeros((x.shape[1], 1))
    for _ in range(steps):
        w = w - 0.2 * x.T @ (x @ w - y) / len(y)
    return (w,)


# A mean whose division `minimize` repeats, with n times the rate, is the same step of SGD, and is accepted.
@holds("values equal NumPy's", _draw_points, cases=4,
       told=lambda case: "{} points with {} features, {} steps".format(*case))
def job_values(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    x, y, steps = _line(case)
    return where_differ("w", np.asarray(yours(x, y, steps)), _descend(x, y, steps)[0])


# ---- 4.h2
def _draw_perms(rng: random.Random, size: int) -> tuple[tuple[int, ...], ...]:
    axes = range(min(4, 1 + size))
    return tuple(tuple(rng.sample(axes, len(axes))) for _ in range(rng.randint(1, 4)))


def _transpose(x: np.ndarray, perms: Sequence[Sequence[int]]) -> tuple[np.ndarray, int]:
    for perm in perms:
        x = x.transpose(perm)
    return x + 1, 1


pass_values = _equal(_draw_perms, lambda case: "transposes " + ", ".join(map(str, case)),
                     lambda case: (_normal(0, *range(2, 2 + len(case[0]))), case), ("y", "transposes"), _transpose)


# ---- 5.h1
def _draw_temperatures(rng: random.Random, size: int) -> tuple[float, ...]:
    return tuple(rng.choice((0.25, 0.5, 1.0, 2.0)) for _ in range(size))


@holds("values equal NumPy's", _draw_temperatures, cases=12,
       told=lambda case: "temperatures " + ", ".join(map(str, case)))
def anneal_values(case: tuple[float, ...], yours: Callable) -> list[str] | None:
    x = _normal(len(case), 2, 3)
    answer = yours(x, case)
    if lines := counted(answer, ("results", "builds")):
        return lines
    found = answer[0]
    if lines := counted(found, [f"temperature {t}" for t in case]):
        return lines
    for t, y in zip(case, found):
        e = np.exp(x / t)
        if lines := where_differ(f"at {t}", np.asarray(y), e / e.sum(1, keepdims=True)):
            return lines
    return None


@holds("one graph, built once, computes all results", _draw_temperatures, cases=3,
       told=lambda case: "temperatures " + ", ".join(map(str, case)))
def anneal_builds(case: tuple[float, ...], yours: Callable) -> list[str] | None:
    builds = yours(_normal(0, 2, 3), case)[1]
    return None if builds == 1 else [f"  yours           build ran {builds} times", "  should be       once"]


# ---- 5.h2
def _draw_pixels(rng: random.Random, size: int) -> tuple[int, int]:
    return 16 * rng.randint(1, size), 64 * rng.randint(1, size)


def _pixels(case: tuple[int, int]) -> tuple[np.ndarray, list[float], list[float]]:
    return _normal(case[0], *case), [0.5], [0.25]


@holds("the column is the right one", _draw_pixels, cases=6, told=lambda case: f"x {case}")
def network_values(case: tuple[int, int], yours: Callable) -> list[str] | None:
    x, mean, deviation = _pixels(case)
    sums = np.tanh((x - mean) / deviation).cumsum(1)
    column = np.asarray(yours(x, mean, deviation)[0])
    if column.shape != sums.shape[:1]:
        return [f"  yours           shape {column.shape}", f"  should be       shape {sums.shape[:1]}"]
    return where_differ("sum", sums[np.arange(len(x)), column.astype(int)], sums.max(1))


@holds("the arena holds two float32 values", _draw_pixels, cases=6, told=lambda case: f"x {case}")
def network_memory(case: tuple[int, int], yours: Callable) -> list[str] | None:
    x, mean, deviation = _pixels(case)
    arena, most = int(yours(x, mean, deviation)[1]), 2 * x.nbytes + 4096
    if arena <= most:
        return None
    return [f"  yours           {arena:,} bytes", f"  at most         {most:,} bytes"]


# ---- 6.h1
def _draw_devices(rng: random.Random, size: int) -> tuple[int, int, int]:
    return rng.choice((1, 2, 4)), rng.randint(4, 8), rng.randint(1, size)


# A conversion of a @ b to B before the call of bend gives the same values, and is accepted.
@holds("values equal NumPy's", _draw_devices, cases=12,
       told=lambda case: "{} devices, a (2, {}), b ({}, {})".format(*case[:2], *case[1:]))
def bend_values(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    devices, n, k = case
    a, b = _normal(n, 2, n), _normal(k, n, k)
    return where_differ("y", np.asarray(yours(a, b, devices)), 2 * (a @ b) + (a @ b) ** 2)


# ---- 6.h2
def _draw_ranks(rng: random.Random, size: int) -> tuple[int, int, int]:
    return rng.randint(2, 20), rng.randint(0, 9), min(4, 1 + size)


def _describe_ranks(case: tuple[int, int, int]) -> str:
    return "{} samples on each rank, seed {}, {} ranks".format(*case)


@holds("each rank has samples of its own", _draw_ranks, cases=6, told=_describe_ranks,
       edges=[(2, 0, 1), (2, 0, 2)])
def rank_samples(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    samples, mean = yours(*case)
    if lines := counted(samples, [f"rank {i}" for i in range(case[2])]):
        return lines
    found = np.asarray(samples)
    if found.shape != (case[2], case[0]):
        return [f"  yours           shape {found.shape}", f"  should be       shape {(case[2], case[0])}"]
    if len(np.unique(found)) < found.size:
        return ["  yours           two of all the samples are equal"]
    return where_differ("mean", np.asarray(mean), found.mean())


@holds("the seed determines the samples", _draw_ranks, cases=3, told=_describe_ranks)
def rank_seed(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    n, seed, ranks = case
    first, again, other = (np.asarray(yours(n, s, ranks)[0]) for s in (seed, seed, seed + 1))
    if not np.array_equal(first, again):
        return ["  yours           other samples in a second run with the same seed"]
    same = [rank for rank in range(ranks) if np.array_equal(first[rank], other[rank])]
    return [f"  yours           rank {same[0]} has the same samples for another seed"] if same else None
