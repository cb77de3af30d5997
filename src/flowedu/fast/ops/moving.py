"""blend: one kernel that updates running statistics with the statistics of a batch."""
from __future__ import annotations

from flowedu.core.ops.record import Laws, Split
from flowedu.ops.formula import elementwise

blend = elementwise("blend(x, y, a, b) -> z", Split(linear=[("x", "y"), ("a", "b"), ("x", "b"), ("a", "y")]),
                    Laws([dict(shapes=[(6, 12), (6, 12), (), ()]),
                          dict(shapes=[(6, 12), (12,), (6, 1), (12,)])]),
                    formula=lambda x, y, a, b: x * a + y * b,
                    doc="a * x + b * y; a and b are numbers, or broadcast.")
