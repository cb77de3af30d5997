"""Type names for the functions of records (core/ops/record.py)."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flowedu.core.eager.tensor import Tensor
    from flowedu.core.ops.define import Op
    from flowedu.core.ops.value import Value

# An operand of a gradient rule: a tensor, or a symbolic value of a graph or formula.
AnyTensor: TypeAlias = "Tensor | Value"
Gradients: TypeAlias = "dict[str, AnyTensor | None]"            # {input: its gradient}
Shape: TypeAlias = tuple[int, ...]
Ints: TypeAlias = tuple[int, ...]                               # of axes: strides, pads, positions
# The attributes of a call, as kernels read them.
Packed: TypeAlias = tuple[tuple[int, ...], tuple[float, ...]]
# An entry of `spread`: the op of a device, and f(start, stop), which returns that op's attributes.
LocalCall: TypeAlias = "tuple[Op, Callable[[int, int], dict[str, Any]]]"
Spread: TypeAlias = dict[tuple[str, ...], LocalCall]            # {SBP signature: the call on a device}
