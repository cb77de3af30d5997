"""Layers that pad: with zeros, a constant, the border, its mirror image, or the other side."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class _Pad(Module):
    """axes: how many are padded; mode: of F.pad."""

    axes, mode = 2, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.axes:
            raise ArgumentError(f"{type(self).__name__}: padding has the wrong length",
                                expected=f"an int or {2 * self.axes} "
                                "ints, those of the last axis first", got=repr(padding), fix="padding=1 pads all sides")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


def _pads(mode: str, names: tuple[str, ...], what: str) -> list[type]:
    made = []
    for name in names:
        axes = int(name[-2])
        doc = f"{what} around the last {axes} axes. padding: an int, or (before, after) of the last axis, ..."
        made.append(type(name, (_Pad,), {"axes": axes, "mode": mode, "__doc__": doc, "__module__": __name__}))
    return made


ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads(
    "reflect", ("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"), "A mirror image without the border")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads(
    "replicate", ("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"), "The border, repeated")
CircularPad1d, CircularPad2d, CircularPad3d = _pads(
    "circular", ("CircularPad1d", "CircularPad2d", "CircularPad3d"), "The other side")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads("constant", ("ZeroPad1d", "ZeroPad2d", "ZeroPad3d"), "Zeros")


class ConstantPad1d(_Pad):
    """`value` around the last axis. padding: an int, or (before, after)."""

    axes = 1

    def __init__(self, padding, value: float = 0.0):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """`value` around the last two axes."""

    axes = 2


class ConstantPad3d(ConstantPad1d):
    """`value` around the last three axes."""

    axes = 3
