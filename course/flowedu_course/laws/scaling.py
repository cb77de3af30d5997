"""Laws of chapter 5: the loss scale of mixed-precision training, checked after each step."""
from __future__ import annotations

from flowedu.nn.amp.grad_scaler import LARGEST
from flowedu_course.laws import SMALLEST, counted, each, fewer, holds, less, simpler


def _trainings(rng, size):
    """Draw (first scale, growth, backoff, interval, overflow flags of each step, one per optimizer)."""
    start = rng.choice((1.0, 8.0, 65536.0, 2.0 ** 126, 2.0 ** 127))
    optimizers = rng.choice((1, 1, 2, 3))
    steps = tuple(tuple(rng.random() < 0.2 for _ in range(optimizers))
                  for _ in range(rng.randint(1, 4 * size)))
    return start, rng.choice((2.0, 2.0, 4.0)), rng.choice((0.5, 0.5, 0.25)), rng.randint(1, 4), steps


def _fewer_optimizers(steps):
    return zip(*map(fewer, steps))


def _without_overflow(overflows):
    return [(False,) * len(overflows)] if any(overflows) else []


_smaller_trainings = simpler((4, fewer), (4, _fewer_optimizers), (4, each(_without_overflow)),
                             (0, lambda start: [] if start in (8.0, 1.0) else [8.0]), (3, less(1)))


def _step(overflows):
    if len(overflows) == 1:
        return "overflow" if overflows[0] else "good"
    return f"({', '.join('overflow' if o else 'good' for o in overflows)})"


def _describe(case, many=6):
    start, growth, backoff, interval, steps = case
    said = ", ".join(map(_step, steps[:many])) + (", ..." if len(steps) > many else "")
    return f"scale {start:g}, growth {growth:g} after {interval}, backoff {backoff:g}; steps: {said}"


GOOD, BAD = (False,), (True,)
EDGES = [(8.0, 2.0, 0.5, 1, (GOOD, BAD)), (8.0, 2.0, 0.5, 2, (GOOD, BAD, GOOD, GOOD)),
         (LARGEST / 2, 2.0, 0.5, 1, (GOOD, GOOD)), (LARGEST, 2.0, 0.5, 2, (GOOD,) * 5),
         (1.0, 4.0, 0.25, 1, ((False, True), (False, False)))]


@holds("the scale is correct after each step", _trainings, _smaller_trainings, cases=200, told=_describe,
       edges=EDGES)
def followed(case, yours):
    scale, growth, backoff, interval, steps = case
    good = 0
    for i, overflows in enumerate(steps):
        got = yours(scale, good, list(overflows), growth, backoff, interval)
        said = [f"{SMALLEST}{_describe((*case[:4], steps[:i + 1]))}"]
        if lines := counted(got, ("scale", "good")):
            return [*said, *lines]
        was = scale, good
        if any(overflows):
            scale, good = scale * backoff, 0
        elif good + 1 == interval:
            scale, good = scale if scale * growth > LARGEST else scale * growth, 0
        else:
            good += 1
        if tuple(got) != (scale, good):
            return [*said, f"  before          scale {was[0]:g}, {was[1]} good in a row",
                    f"  yours           scale {_number(got[0])}, {_number(got[1])} good in a row",
                    f"  should be       scale {scale:g}, {good} good in a row"]
    return None


def _number(x):
    return f"{x:g}" if isinstance(x, (int, float)) else repr(x)[:40]
