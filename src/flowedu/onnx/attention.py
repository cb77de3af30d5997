"""ONNX rule of attention: two matrix products and a softmax, a pattern that runtimes recognize."""
from __future__ import annotations

import math

import numpy as np

from flowedu.onnx.ops import filled_with, rule


@rule("attention")
def attention(b, a, s, x):
    q, k, v, mask = x
    transposed = b.add("Transpose", [k], perm=[*range(s[1].ndim - 2), s[1].ndim - 1, s[1].ndim - 2])
    scores = b.add("Mul", [b.add("MatMul", [q, transposed]), b.number(a["scale"], s[0].dtype)])
    hidden = [] if filled_with(b, mask) == 0 else [b.as_bool(mask)]
    if a["causal"]:
        hidden.append(b.as_bool(b.array(np.triu(np.ones((s[0].shape[-2], s[1].shape[-2]), bool), 1))))
    for part in hidden:
        scores = b.add("Where", [part, b.number(-math.inf, s[0].dtype), scores])
    y = b.add("MatMul", [b.add("Softmax", [scores], axis=-1), v])
    if filled_with(b, mask) != 0 and not a["nan"]:                      # fully masked rows are 0
        y = b.add("Where", [b.add("IsNaN", [y], boolean=True), b.number(0.0, s[0].dtype), y])
    return [y, None]
