"""ONNX rules of lstm, gru, and rnn, unrolled step by step.

ONNX's own LSTM op is not used, because it would multiply the inputs by their weights a second time.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowedu.onnx.ops import filled_with, rule


class Steps:
    """Steps of a layer, in order. The inputs are those of lstm, gru, and rnn: given, w, b, lengths, h0.

    Attributes: given, contribution of the inputs to each step; active, mask of the unfinished rows at each
    step, or None if all rows have the full length; y, output of each step.
    """

    def __init__(self, b, reverse: bool, specs, names: list[str]):
        self.b, self.steps, self.reverse = b, specs[0].shape[0], reverse
        given, lengths = names[0], names[3]
        self.given = self._split_steps(given)
        self.y: list[Any] = [None] * self.steps
        longer = [] if self._cover_all(lengths) else [b.add("Greater", [lengths, b.number(t, specs[3].dtype)],
                                                            boolean=True)
                                                for t in range(self.steps)]
        self.active = ([b.add("Unsqueeze", [mark, b.ints([1])], boolean=True) for mark in longer]
                       or [None] * self.steps)

    def _split_steps(self, x: str) -> list[str]:
        parts = ([x] if self.steps == 1 else self.b.add("Split", [x], results=self.steps, axis=0,
                                                        num_outputs=self.steps))
        return [self.b.add("Squeeze", [p, self.b.ints([0])]) for p in parts]

    def _cover_all(self, lengths: str) -> bool:
        """Return True if the lengths are one constant that covers all steps, as for unpacked sequences."""
        number = filled_with(self.b, lengths)
        return number is not None and number >= self.steps

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.steps - 1, -1, -1) if self.reverse else range(self.steps))

    def keep(self, t: int, *pairs: tuple[str, str]) -> list[str]:
        """Return the new state of each (new, old) pair, or the old state for finished rows.

        The first state is the output of the step.
        """
        mask = self.active[t]
        states = [new if mask is None else self.b.add("Where", [mask, new, old]) for new, old in pairs]
        self.y[t] = states[0]
        return states

    def outputs(self) -> str:
        rows = [self.b.add("Unsqueeze", [y, self.b.ints([0])]) for y in self.y]
        return self.b.add("Concat", rows, axis=0)


def _gemm(b, x: list[str], h: str) -> str:
    return b.add("Gemm", [h, x[1], x[2]], transB=1)


@rule("lstm")
def lstm(b, a, s, x):
    walk, (h, c) = Steps(b, a["reverse"], s, x), x[4:]
    for t in walk:
        i, f, g, o = b.add("Split", [b.add("Add", [walk.given[t], _gemm(b, x, h)])], results=4, axis=1,
                           num_outputs=4)
        i, f, o = (b.add("Sigmoid", [v]) for v in (i, f, o))
        g = b.add("Tanh", [g])
        cell = b.add("Add", [b.add("Mul", [f, c]), b.add("Mul", [i, g])])
        h, c = walk.keep(t, (b.add("Mul", [o, b.add("Tanh", [cell])]), h), (cell, c))
    return [walk.outputs(), h, c, None, None]


@rule("gru")
def gru(b, a, s, x):
    walk, h = Steps(b, a["reverse"], s, x), x[4]
    for t in walk:
        gr, gz, gn = b.add("Split", [walk.given[t]], results=3, axis=1, num_outputs=3)
        hr, hz, p = b.add("Split", [_gemm(b, x, h)], results=3, axis=1, num_outputs=3)
        r, z = [b.add("Sigmoid", [b.add("Add", pair)]) for pair in ([gr, hr], [gz, hz])]
        n = b.add("Tanh", [b.add("Add", [gn, b.add("Mul", [r, p])])])
        h, = walk.keep(t, (b.add("Add", [n, b.add("Mul", [z, b.add("Sub", [h, n])])]), h))
    return [walk.outputs(), h, None]


@rule("rnn")
def rnn(b, a, s, x):
    walk, h = Steps(b, a["reverse"], s, x), x[4]
    for t in walk:
        y = b.add(a["nonlinearity"].capitalize(), [b.add("Add", [walk.given[t], _gemm(b, x, h)])])
        h, = walk.keep(t, (y, h))
    return [walk.outputs(), h]
