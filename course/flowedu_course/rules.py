"""Rules of chapter.toml that compare the measures of an answer: stars, and half of a target's points.

A rule is a comparison, such as "kernels <= 1.10 * library", or several joined by "and". Its two sides consist
of numbers, names of measures, +, -, and *. The name of a measure alone, such as "right", holds if the measure
is true. Text after a # describes the rule. A rule is not evaluated as Python code.
"""
from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from typing import Any

COMPARISONS = {ast.LtE: operator.le, ast.GtE: operator.ge, ast.Eq: operator.eq}
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def holds(rule: str, measures: Mapping[str, Any]) -> bool:
    """Return True if the rule holds for these measures. Raise ValueError if it is not a rule."""
    return bool(evaluate(rule, measures))


def evaluate(rule: str, measures: Mapping[str, Any]) -> Any:
    """Return the value of a rule, or of one side of a comparison."""
    def value(node: ast.expr) -> Any:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(value(part) for part in parts)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                return COMPARISONS[type(op)](value(left), value(right))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return ARITHMETIC[type(op)](value(left), value(right))
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name in measures:
                return measures[name]
        raise ValueError(f"rule {rule!r}: unknown: {ast.unparse(node)}; expected: comparisons (<=, >=, ==) "
                         f"of numbers and {', '.join(measures)}, joined by 'and'")

    return value(_parse(rule))


def names(rule: str) -> set[str]:
    """Return the measures that a rule names."""
    return {node.id for node in ast.walk(_parse(rule)) if isinstance(node, ast.Name)}


def goals(rule: str) -> Iterator[tuple[str, bool]]:
    """Yield (measure on the left of a comparison, True if less is better)."""
    for node in ast.walk(_parse(rule)):
        if isinstance(node, ast.Compare):
            for name in sorted(names(ast.unparse(node.left))):
                yield name, not isinstance(node.ops[0], ast.GtE)


def is_timed(rule: str) -> bool:
    """Return True for a rule about the time of the answer, which differs between machines."""
    return any(name.startswith("yours") for name in names(rule))


def _parse(rule: str) -> ast.expr:
    return ast.parse(rule.partition("#")[0].strip(), mode="eval").body
