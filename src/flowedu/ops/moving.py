"""blend: what moves running statistics towards those of a batch, in one kernel."""
from __future__ import annotations

from flowedu.ops.formula import elementwise

blend = elementwise("blend(x, y, a, b) -> z", formula=lambda x, y, a, b: x * a + y * b,
                    linear=[("x", "y"), ("a", "b"), ("x", "b"), ("a", "y")],
                    doc="a * x + b * y; a and b are numbers, or broadcast.")
blend.examples = [dict(shapes=[(6, 12), (6, 12), (), ()]), dict(shapes=[(6, 12), (12,), (6, 1), (12,)])]
