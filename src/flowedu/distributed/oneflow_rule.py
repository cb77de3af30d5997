"""OneFlow 0.9's rule for the choice of signatures (flow.boxing.rule), an alternative to core/sbp/rules.py.

The rule has its own prices. On one axis of devices it first compares the number of inputs that need no
boxing, then the price, then the order of the signatures. An input that is B and must be converted has a
higher price than any number of bytes, even if it only has to be cut. On a grid the rule takes the first
signature that needs no boxing. Otherwise it takes the lowest price, and the last of equal prices.
Cutting B costs 1 on a grid.

    two devices     "bytes"               "oneflow"          what decides there
    add S(0), B     S(0), S(0) -> S(0)    B, B -> B          cutting B moves 0 bytes; its price is 2^31
    add B, P        S(0), S(0) -> S(0)    B, B -> B          the same; reduce-scatter moves half of all-reduce
    matmul B, S(0)  S(1), S(0) -> P       B, S(1) -> S(1)    the same
    matmul S(1), B  S(1), S(0) -> P       S(0), B -> S(0)    the same
    matmul P, S(1)  P, B -> P             B, S(1) -> S(1)    all-gather moves half of all-reduce
    mul P, P        S(0), S(0) -> S(0)    P, B -> P          the same
    concat P, S(0)  S(1), S(1) -> S(1)    P, P -> P          one input fits; "bytes" makes no partial sums

OneFlow itself differs from rule "oneflow" only where its list of signatures differs. OneFlow has no partial
maximum (max of S(0) is B). Its conv2d does not accept w=S(0). Its batch norm accepts x=S(0) and normalizes
the rows of each device separately. For (4, 4) + (4,) with S(0) and B, which needs no boxing, OneFlow has been
observed to return B.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.sbp.rules import RULES, Asked, ChoiceRule
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.spec import Spec

INT32_MAX, INT64_MAX = 2 ** 31 - 1, 2 ** 63 - 1
PENALTY = 4                        # OneFlow's ONEFLOW_PENALTY_FOR_PARTIAL_IN_CONSUMER_POLICY


def row_price(src: Layout, dst: Layout, spec: Spec) -> int:
    """Return OneFlow's price of an input on a row of devices."""
    if (src.sbp, src.k) == (dst.sbp, dst.k):
        return 0
    if dst.sbp[0][0] == "P":
        return INT64_MAX
    return INT32_MAX if src.sbp[0] == "B" else spec.nbytes


def grid_price(src: Layout, dst: Layout, spec: Spec) -> int:
    """Return OneFlow's price of an input on a grid: the price of each axis that changes, plus 1 for each."""
    total = spec.nbytes
    if src.devices != dst.devices or src.hierarchy != dst.hierarchy:
        p, c = src.k, dst.k
        times = 1 + (c - 1) * dst.whole + (p - 1) * bool(src.partial) + PENALTY * (p + c) * bool(dst.partial)
        return times * total
    price = 0
    for axis, (a, b, n) in enumerate(zip(src.sbp, dst.sbp, src.hierarchy)):
        if a != b and n > 1:
            price += 1 + _axis_price(a[0], b[0], total, n)
            # Split again along a split axis.
            price += total * (b[0] == "S" and b in src.sbp[axis + 1:])
    return price


def _axis_price(a: str, b: str, total: int, n: int) -> int:
    if b == "P":
        return PENALTY * total * 2 * n
    return {"SS": total * (n - 1) // n, "SB": total * (n - 1), "PS": total * (n - 1),
            "PB": 2 * total * (n - 1), "BS": 1, "PP": total * 2 * (n - 1)}[a + b]


def _priced(c, asked: Asked, price: Callable) -> int:
    return sum(price(src, dst, spec) for src, dst, spec in zip(asked.present, c.layouts, asked.specs))


def _oneflow(c, asked: Asked) -> tuple:
    exact = sum((src.sbp, src.k) == (dst.sbp, dst.k) for src, dst in zip(asked.present, c.layouts))
    if all(len(s) == 1 for s in c.signature):
        return -10 * exact, _priced(c, asked, row_price), c.number
    if exact == len(asked.specs):
        return 0, 0, c.number
    return 1, _priced(c, asked, grid_price), -c.number


RULES["oneflow"] = ChoiceRule(
    _oneflow, ("more inputs stay as they lie", "the lowest of OneFlow's prices",
               "the place among the signatures"), True)
