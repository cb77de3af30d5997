"""Ops whose kernels first reorder constant inputs, such as weights, in scratch memory.

If these inputs have not changed since the last run, the kernels reuse the reordered copy (`kept` of fe_call,
_kernels/core/abi.h).
"""
from __future__ import annotations

from flowedu.core.ops.define import Op
from flowedu.ops.conv import conv2d

KEPT: dict[Op, tuple[int, ...]] = {conv2d: (1,)}          # op -> positions of these inputs
