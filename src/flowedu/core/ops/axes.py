"""Axis equations: "mk,kn->mn" yields the output shape, errors, cost, and SBP signatures of an op.

A letter names an axis. A lower-case letter may be split over devices; an upper-case letter must
stay whole. `1` is a broadcast axis. Lower-case letters absent from an output are contracted.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flowedu.core.ops.call import OpBase
from flowedu.core.values.spec import Spec, broadcast
from flowedu.errors import ops as errors

LETTERS = "abcdefgijlmnopqrstuvwxyz"


def parse(equation: str, inputs: int) -> tuple[list[str], list[str]]:
    """Return the terms (strings of letters) of the `inputs` inputs, and of the outputs."""
    left, _, right = equation.partition("->")
    return (left.split(",") if inputs else []), right.split(",")


def elementwise(*specs: Spec) -> str:
    """Return the equation of a broadcasting elementwise op: "ab,b->ab", "ab,1b->ab"."""
    out = broadcast(*[s.shape for s in specs])
    rank = len(out)
    terms = []
    for s in specs:
        shift = rank - s.ndim
        terms.append("".join("1" if n == 1 and out[shift + i] != 1 else LETTERS[shift + i]
                             for i, n in enumerate(s.shape)))
    return ",".join(terms) + "->" + LETTERS[:rank]


def same(rank: int, whole: Sequence[int] = ()) -> str:
    """Return the letters of an array: upper case for the axes in `whole`, which stay whole."""
    return "".join(LETTERS[i].upper() if i in whole else LETTERS[i] for i in range(rank))


def sizes(op: OpBase, equation: str, specs: Sequence[Spec]) -> dict[str, int]:
    """Return {letter: size}, or raise a ShapeError if a letter has two sizes."""
    terms, _ = parse(equation, len(specs))
    result: dict[str, int] = {}
    for i, (term, spec) in enumerate(zip(terms, specs)):
        if len(term) != spec.ndim:
            name = op.inputs[0 if op.variadic else i]
            raise errors.number_of_axes(op.name, name, spec.ndim, len(term), equation,
                                        format_shapes(op, terms, specs))
        for letter, n in zip(term, spec.shape):
            if letter != "1" and result.setdefault(letter, n) != n:
                raise errors.two_sizes(op.name, letter, result[letter], n, equation,
                                       format_shapes(op, terms, specs))
    return result


def format_shapes(op: OpBase, terms: Sequence[str], specs: Sequence[Spec]) -> str:
    """Return the shapes with their letters: `a (m=4, k=6), b (k=5, n=3)`."""
    parts = []
    for i, spec in enumerate(specs):
        name = op.inputs[0 if op.variadic else i]
        term = terms[i] if i < len(terms) and len(terms[i]) == spec.ndim else ""
        axes = [f"{term[d]}={n}" if term else str(n) for d, n in enumerate(spec.shape)]
        parts.append(f"{name} ({', '.join(axes)})")
    return ", ".join(parts)


def output_shapes(op: OpBase, equation: str, specs: Sequence[Spec]) -> list[tuple[int, ...]]:
    """Return the output shapes that the letters determine."""
    known = sizes(op, equation, specs)
    return [tuple(known[c] for c in term) for term in parse(equation, len(specs))[1]]


def cost(op: OpBase, specs: Sequence[Spec], outs: Sequence[Spec], equation: str) -> int:
    """Estimate the work of a call: max(elements read and written, multiplications / 8)."""
    terms, right = parse(equation, len(specs))
    touched = sum(s.size for s in specs) + sum(s.size for s in outs)
    letters: dict[str, int] = {}
    for term, spec in zip(terms, specs):
        letters.update(zip(term, spec.shape))
    letters.pop("1", None)
    contracted = prod(n for c, n in letters.items() if not any(c in t for t in right))
    return max(touched, contracted * max((s.size for s in outs), default=0) // 8)
