"""Laws of the fault hunts in Python. The programs take and return arrays and numbers; NumPy has the right ones."""
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


@holds("the total has no history", _draw_points, cases=2, told=_describe_state)
def step_tape(case: tuple[int, int, int], yours: Callable) -> list[str] | None:
    _, total = yours(*_state(case))
    if not getattr(total, "requires_grad", False):
        return None
    return ["  yours           the total can be differentiated, so the tape keeps its calls"]
