"""Rules that order the candidates of a call by a key. The smallest key wins.

"bytes", the default, prefers the fewest bytes of boxing for the inputs. Ties go to fewer grid axes
with partial results, which cost bytes later, then to more inputs that keep their layout. Last, the
order S(0), S(1) ..., B, P decides (for outputs, B comes first, because a later split is free).

distributed/oneflow_rule.py has the rule of OneFlow.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowedu.core.sbp.sbp import Layout, split_axis
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import register_fields

# strict: refuse implicit boxing. rule: a key of RULES. choice_log: a list of all choices, or None.
register_fields(strict=False, rule="bytes", choice_log=None)


class Asked(NamedTuple):
    """The inputs of a call, for rules: their logical Specs, and the first layout of each."""

    specs: Sequence[Spec]
    present: Sequence[Layout]


class ChoiceRule(NamedTuple):
    """A rule. `because` has a reason per part of the key. `partial`: True to allow boxing to P."""

    key: Callable
    because: Sequence[str]
    partial: bool


def _fewest_bytes(c: Any, asked: Asked) -> tuple:
    outputs = c.signature[len(asked.specs):]
    axes = range(len(outputs[0])) if outputs else ()
    partial = sum(any(s[axis][0] == "P" for s in outputs) for axis in axes)
    return c.bytes, partial, -c.matches, _rank(c.signature, len(asked.specs))


def _rank(signature: tuple, inputs: int) -> tuple:
    def place(s: str, whole: int) -> int:
        if s == "B":
            return whole
        return 2000 if s[0] == "P" else split_axis(s)
    return tuple(place(s, 1000 if i < inputs else -1) for i, sbps in enumerate(signature)
                 for s in sbps)


RULES = {
    "bytes": ChoiceRule(_fewest_bytes, (
        "the fewest bytes to move", "fewer partial results, which would cost somebody later",
        "more inputs stay as they lie", "the first in the order S(0), S(1) ..., B, P"), False),
}
