"""Ops whose kernels bring constant inputs, such as weights, into an order of their own first, in scratch memory: where
these inputs have not changed since the last run, they need not do so again (`kept` of fe_call, _kernels/core/abi.h)."""
from __future__ import annotations

from flowedu.core.ops.define import Op
from flowedu.ops.conv import conv2d

KEPT: dict[Op, tuple[int, ...]] = {conv2d: (1,)}          # op -> positions of these inputs
