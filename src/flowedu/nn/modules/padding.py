"""Layers that pad with zeros, a constant, the border, a reflection, or elements of the opposite side."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class _Pad(Module):
    """Base class of the padding layers.

    `axes` is the number of padded axes, and `mode` the mode of F.pad.
    """

    axes, mode = 2, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.axes:
            raise ArgumentError(f"{type(self).__name__}: padding has the wrong length",
                                expected=f"an int or {2 * self.axes} "
                                "ints, those of the last axis first", got=repr(padding),
                                fix="padding=1 pads all sides")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


_AXES = {1: "last axis", 2: "last two axes", 3: "last three axes"}
_ARGS = """

Args:
    padding: number of elements added. An int applies to all sides. A tuple contains (before, after) for
        each padded axis, starting with the last axis.
"""


class _CircularPad(_Pad):
    """Base class of the layers that pad with elements of the opposite side."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Accept all inputs, because F.pad checks the shape. Subclasses may override it, as in PyTorch."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


def _make_pads(mode: str, names: tuple[str, ...], content: str, base: type = _Pad) -> list[type]:
    """Return the padding layers of one mode for one, two, and three axes."""
    layers = []
    for name in names:
        axes = int(name[-2])
        doc = f"Padding of the {_AXES[axes]} with {content}.{_ARGS}"
        layers.append(type(name, (base,), {"axes": axes, "mode": mode, "__doc__": doc,
                                           "__module__": __name__}))
    return layers


ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _make_pads(
    "reflect", ("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"),
    "the reflection of the input, without repeating the border")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _make_pads(
    "replicate", ("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"), "copies of the border")
CircularPad1d, CircularPad2d, CircularPad3d = _make_pads(
    "circular", ("CircularPad1d", "CircularPad2d", "CircularPad3d"), "the elements of the opposite side",
    _CircularPad)


class _ConstantPad(_Pad):
    """Base class of the layers that pad with a constant."""

    def __init__(self, padding, value: float = 0.0):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Padding of the last axis with a constant.

    Args:
        padding: number of elements added on both sides, an int or (before, after).
        value: the constant.
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Padding of the last two axes with a constant.

    Args:
        padding: number of elements added, an int or (left, right, top, bottom).
        value: the constant.
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Padding of the last three axes with a constant.

    Args:
        padding: number of elements added, an int or (before, after) for each axis, starting with the last.
        value: the constant.
    """

    axes = 3


class _ZeroPad(_ConstantPad):
    """Base class of the layers that pad with zeros."""

    def __init__(self, padding):
        super().__init__(padding)

    extra_repr = _Pad.extra_repr


ZeroPad1d, ZeroPad2d, ZeroPad3d = (
    type(f"ZeroPad{base.axes}d", (_ZeroPad, base), {
        "__doc__": f"Padding of the {_AXES[base.axes]} with zeros.{_ARGS}", "__module__": __name__})
    for base in (ConstantPad1d, ConstantPad2d, ConstantPad3d))
