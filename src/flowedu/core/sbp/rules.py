"""Rules: which of several ways is taken. A rule gives every candidate a key; the smallest key wins.

"bytes", the default: the fewest bytes to bring the inputs into place; then fewer partial results, which would cost
bytes later; then the way that takes more inputs as they lie; then S(0) before S(1) ... before B before P, first for the
inputs (for outputs B comes first). A result of whole inputs is made once, whole: to cut it later costs nothing.

Another one is OneFlow's own: distributed/oneflow_rule.py.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flowedu.core.sbp.sbp import Layout, split_axis
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import register_fields

# strict: nothing is boxed by itself; rule: how layouts are chosen; choice_log: a list that gets every choice, or None
register_fields(strict=False, rule="bytes", choice_log=None)


class Asked(NamedTuple):
    """A rule's view of the call: logical Specs of the inputs, and the layout each is in (the first one)."""

    specs: Sequence[Spec]
    present: Sequence[Layout]


class ChoiceRule(NamedTuple):
    """key(candidate, asked): the key that is compared. because: the reason that each part of the key stands for. partial:
    whether a value may be turned into a partial one."""

    key: Callable
    because: Sequence[str]
    partial: bool


def _fewest_bytes(c, asked: Asked) -> tuple:
    outputs = c.signature[len(asked.specs):]
    partial = sum(any(s[axis][0] == "P" for s in outputs) for axis in range(len(outputs[0]))) if outputs else 0
    return c.bytes, partial, -c.matches, _rank(c.signature, len(asked.specs))


def _rank(signature, inputs: int) -> tuple:
    def place(s: str, whole: int) -> int:
        return whole if s == "B" else 2000 if s[0] == "P" else split_axis(s)
    return tuple(place(s, 1000 if i < inputs else -1) for i, sbps in enumerate(signature) for s in sbps)


RULES = {
    "bytes": ChoiceRule(_fewest_bytes, (
        "the fewest bytes to move", "fewer partial results, which would cost somebody later",
        "more inputs stay as they lie", "the first in the order S(0), S(1) ..., B, P"), False),
}
