"""Laws of chapter 5: the factor of a loss from step to step. The expected values follow the written rule."""
from __future__ import annotations

from flowedu.learn.laws import Law, counted
from flowedu.nn.amp.grad_scaler import LARGEST


def _trainings(rng, size):
    """(first scale, growth, backoff, interval, for each step whether each optimizer met an overflow)"""
    start = rng.choice((1.0, 8.0, 65536.0, 2.0 ** 126, 2.0 ** 127))
    optimizers = rng.choice((1, 1, 2, 3))
    steps = tuple(tuple(rng.random() < 0.2 for _ in range(optimizers)) for _ in range(rng.randint(1, 4 * size)))
    return start, rng.choice((2.0, 2.0, 4.0)), rng.choice((0.5, 0.5, 0.25)), rng.randint(1, 4), steps


def _smaller_trainings(case):
    start, growth, backoff, interval, steps = case
    yield from ((start, growth, backoff, interval, steps[:i] + steps[i + 1:]) for i in range(len(steps)) if len(steps) > 1)
    if len(steps[0]) > 1:
        yield from ((start, growth, backoff, interval, tuple(s[:i] + s[i + 1:] for s in steps))
                    for i in range(len(steps[0])))
    yield from ((start, growth, backoff, interval, (*steps[:i], (False,) * len(s), *steps[i + 1:]))
                for i, s in enumerate(steps) if any(s))
    if start not in (8.0, 1.0):
        yield 8.0, growth, backoff, interval, steps
    if interval > 1:
        yield start, growth, backoff, interval - 1, steps


def _step(overflows):
    if len(overflows) == 1:
        return "overflow" if overflows[0] else "good"
    return f"({', '.join('overflow' if o else 'good' for o in overflows)})"


def _words(case, many=6):
    start, growth, backoff, interval, steps = case
    said = ", ".join(map(_step, steps[:many])) + (", ..." if len(steps) > many else "")
    return f"scale {start:g}, growth {growth:g} after {interval}, backoff {backoff:g}; steps: {said}"


def _judged(case, yours):
    scale, growth, backoff, interval, steps = case
    good = 0
    for i, overflows in enumerate(steps):
        got = yours(scale, good, list(overflows), growth, backoff, interval)
        said = [f"  smallest case   {_words((*case[:4], steps[:i + 1]))}"]
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


followed = Law("the scale after each step", _trainings, _judged, _smaller_trainings, cases=200, told=_words)
