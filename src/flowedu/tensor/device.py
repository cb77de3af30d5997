"""Devices: where tensors live. This build computes on the CPU."""
from __future__ import annotations

from flowedu.errors import CallError, DeviceError

KINDS = ("cpu", "cuda")


class device:
    """One device: `device("cpu")`, `device("cpu", 0)`, `device("cuda:1")`, or a copy of another.

    Attributes: type, "cpu" or "cuda"; index (default 0). Equal devices have equal type and index; a device never equals
    a string. Making a "cuda" device is allowed everywhere: what fails without one is putting a tensor there.

    Raises DeviceError (a RuntimeError) for other names.
    """

    __slots__ = ("index", "type")

    def __init__(self, type: str | device, index: int | None = None):
        if isinstance(type, device):
            if index is not None:
                raise CallError("device: a device and an index", expected="one of them", got=f"{type}, {index}")
            self.type, self.index = type.type, type.index
            return
        if not isinstance(type, str):
            raise CallError("device: the type is not a string", expected='"cpu" or "cuda:0"', got=repr(type))
        kind, colon, number = type.partition(":")
        if kind not in KINDS:
            raise DeviceError(f"Expected one of {', '.join(KINDS)} device type at start of device string: {type!r}",
                              got=repr(type), fix='flow.device("cpu")')
        if colon and (not number.isdigit() or index is not None):
            raise DeviceError(f"device: invalid device string: {type!r}", expected='"cpu", "cuda:1", or "cuda", 1',
                              got=repr(type) if index is None else f"{type!r} and index {index}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int) or index < 0):
            raise DeviceError("device: the index is not a number of 0 or more", got=repr(index))
        self.type, self.index = kind, int(number) if colon else index or 0

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)


CPU = device("cpu", 0)


def usable(d: str | device) -> device:
    """The device, if tensors can be there. Raises DeviceError."""
    d = d if isinstance(d, device) else device(d)
    if d.type == "cuda":
        raise DeviceError("no GPU: this build of flowedu computes on the CPU only, and flow.cuda.is_available() is False",
                          expected="cpu", got=str(d),
                          fix='leave .cuda() out, or: device = "cuda" if flow.cuda.is_available() else "cpu"')
    if d.index:
        raise DeviceError("the CPU is one device", expected="cpu:0", got=str(d), fix='device("cpu")')
    return CPU
