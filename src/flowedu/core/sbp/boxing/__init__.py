"""Boxing: from one layout to another, as an algebra. (In words and as a picture: show/routes.py, show/boxing.py.)

    geometry.py    boxes: the part each device has, the part it lacks, and its sender
    algebra.py     Hop, Route; `a | b`, `via(middle, a, b)`
    primitives.py  move, reduce, all-reduce, fill; the expression that reaches every layout; route()
    inops.py       a hop written in ops, on all parts at once

Bytes moved on k devices, n bytes of the logical value (after OneFlow 0.9's cost model):

    from \\ to   B               S(j)                  P
    B           0               0 slice               0 keep-first
    S(i)        (k-1)n          n minus what is       0 pad
                all-gather      in place  all-to-all
    P           2(k-1)n         (k-1)n                0
                all-reduce      reduce-scatter

Between different devices every device gets what it lacks, and a partial sum is summed where that is cheapest.
"""
from flowedu.core.sbp.boxing.algebra import Boxing, Hop, Message, Primitive, Route, via
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE, BOXING, FILL, MOVE, PRIMITIVES, REDUCE, route

__all__ = ["ALL_REDUCE", "BOXING", "FILL", "MOVE", "PRIMITIVES", "REDUCE", "Boxing", "Hop", "Message", "Primitive", "Route",
           "route", "via"]
