"""Line search for a step length that satisfies the strong Wolfe conditions, with cubic interpolation."""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

from flowedu.tensor import Tensor


class Point(NamedTuple):
    """Step length t, and the loss, its gradient, and its slope along the direction after such a step."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum of the cubic through two points, within `bounds` (default: between the points)."""
    low, high = bounds or sorted((a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:                                   # no minimum, or a loss that is NaN
        return (low + high) / 2
    d2 = sqrt(square)
    if a.t <= b.t:
        t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        t = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(t, low), high)


def strong_wolfe(at: Callable[[float], Point], start: Point, t: float, longest: float, c1: float = 1e-4,
                 c2: float = 0.9, tolerance: float = 1e-9, most: int = 25) -> tuple[Point, int]:
    """Return (a point that satisfies the strong Wolfe conditions, the number of calls of `at`).

    The loss at this point is lower than at `start` by at least c1 times the decrease that the slope predicts.
    The absolute slope at this point is at most c2 times that at `start`. `longest` is the largest element of
    the direction.
    """
    def too_high(p: Point, before: float) -> bool:
        return p.loss > start.loss + c1 * p.t * start.slope or p.loss >= before

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    last, new = start, at(t)
    asked, tries = 1, 0
    done, bracket = False, None
    while tries < most:                                   # extend until a minimum is between two points
        if too_high(new, last.loss if tries > 1 else float("inf")):
            bracket = [last, new]
            break
        if flat(new):
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [last, new]
            break
        t = cubic_minimum(last, new, (new.t + 0.01 * (new.t - last.t), new.t * 10))
        last, new = new, at(t)
        asked, tries = asked + 1, tries + 1
    if bracket is None:
        bracket = [start, new]
    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and tries < most:                      # then narrow the interval
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * longest < tolerance:
            break
        t, edge = cubic_minimum(bracket[0], bracket[1]), 0.1 * (right - left)
        if min(right - t, t - left) < edge:
            if stuck or t >= right or t <= left:
                t, stuck = (right - edge if abs(t - right) < abs(t - left) else left + edge), False
            else:
                stuck = True
        else:
            stuck = False
        new = at(t)
        asked, tries = asked + 1, tries + 1
        if too_high(new, bracket[low].loss):
            bracket[high] = new
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if flat(new):
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    return bracket[low if len(bracket) > 1 else 0], asked
