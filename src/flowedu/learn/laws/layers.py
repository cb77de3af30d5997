"""Chapter 3: what a weight's initial values depend on."""
from __future__ import annotations

from flowedu.learn.laws import Law, pair, smaller_shapes


def _weights(rng, size):
    rank = rng.choice((2, 2, 3, 4, 5))
    shape = tuple(rng.randint(1, 2 + size) for _ in range(rank))
    return shape, "NHWC" if rank > 2 and rng.random() < 0.4 else ""


def _smaller_weights(case):
    shape, order = case
    for s in smaller_shapes(shape):
        if len(s) > 1 and 0 not in s:
            yield s, order if len(s) > 2 else ""
    if order:
        yield shape, ""


def _counted(shape, order):
    """(inputs that one output sums, outputs that one input reaches), counted one by one."""
    out, *rest = shape
    if len(shape) == 2:
        return rest[0], out
    channels, space = (rest[-1], rest[:-1]) if order else (rest[0], rest[1:])
    windows = 1
    for n in space:
        windows *= n
    return channels * windows, out * windows


def _fan_judged(case, yours):
    shape, order = case
    inputs, outputs = _counted(shape, order)
    for mode, want in (("fan_in", inputs), ("fan_out", outputs), ("fan_avg", (inputs + outputs) / 2)):
        got = yours(shape, mode, order)
        if got != want:
            what = "dense" if len(shape) == 2 else f"convolution, channels {'last' if order else 'first'}"
            return [f"  smallest case   {mode} of a weight {shape}, {what}", *pair("should be", got, want)]
    return None


fan = Law("inputs of an output, outputs of an input", _weights, _fan_judged, _smaller_weights, cases=120)
