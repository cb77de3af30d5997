"""Conversion of values between layouts (boxing).

    geometry.py    boxes: the part that each device has, the parts that it needs, and their senders
    algebra.py     Hop, Route; `a | b`, `via(middle, a, b)`
    primitives.py  move, reduce, all-reduce, fill; the expression BOXING; route()
    inops.py       a hop written in ops, on all parts at once (show/boxing.py: drawings)
Bytes moved on k devices for a logical value of n bytes (after OneFlow 0.9's cost model):

    from \\ to   B               S(j)                  P
    B           0               0 slice               0 keep-first
    S(i)        (k-1)n          n minus local bytes   0 pad
                all-gather      all-to-all
    P           2(k-1)n         (k-1)n                0
                all-reduce      reduce-scatter

Between different devices, every device receives its missing elements, and partial sums are
reduced where that moves the fewest bytes.
"""
from flowedu.core.sbp.boxing.algebra import Boxing, Hop, Message, Primitive, Route, via
from flowedu.core.sbp.boxing.primitives import (ALL_REDUCE, BOXING, FILL, MOVE, PRIMITIVES, REDUCE,
                                                route)

__all__ = ["ALL_REDUCE", "BOXING", "FILL", "MOVE", "PRIMITIVES", "REDUCE", "Boxing", "Hop",
           "Message", "Primitive", "Route", "route", "via"]
