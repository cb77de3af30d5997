"""Devices of tensors: main memory, or the memory of a GPU."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.errors import CallError, DeviceError

KINDS = ("cpu", "cuda")


class device:
    """Device: `device("cpu")`, `device("cpu", 0)`, `device("cuda:1")`, or a copy of another one.

    The attributes are `type`, "cpu" or "cuda", and `index` (default: 0). Two devices are equal if their types
    and indices are equal. A device never equals a string. A "cuda" device object can be created on every
    computer; moving a tensor to this device fails without a GPU.

    Args:
        type: name of the device, with or without its index, or a device.
        index: index of the GPU; default: 0.

    Raises:
        DeviceError (a RuntimeError): the name is unknown.
    """

    __slots__ = ("index", "type")

    type: str
    index: int

    def __init__(self, type: str | device, index: int | None = None) -> None:
        if isinstance(type, device):
            if index is not None:
                raise CallError("device: a device and an index", expected="one of them",
                                got=f"{type}, {index}")
            self.type, self.index = type.type, type.index
            return
        if not isinstance(type, str):
            raise CallError("device: the type is not a string", expected='"cpu" or "cuda:0"', got=repr(type))
        kind, colon, number = type.partition(":")
        if kind not in KINDS:
            raise DeviceError(f"Expected one of {', '.join(KINDS)} device type at start of device string: "
                              f"{type!r}", got=repr(type), fix='flow.device("cpu")')
        if colon and (not number.isdigit() or index is not None):
            raise DeviceError(f"device: invalid device string: {type!r}",
                              expected='"cpu", "cuda:1", or "cuda", 1',
                              got=repr(type) if index is None else f"{type!r} and index {index}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int) or index < 0):
            raise DeviceError("device: the index is not a number of 0 or more", got=repr(index))
        self.type, self.index = kind, int(number) if colon else index or 0

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        """Enter a block that changes nothing for the CPU; raise DeviceError for a GPU."""
        if self.type != "cpu":
            raise DeviceError("with device: tensors are made on the CPU where nothing is said",
                              expected='"cpu"',
                              got=repr(self),
                              fix='model.to("cuda"), and device="cuda" where tensors are made')
        return self

    def __exit__(self, *raised: object) -> None:
        """Leave the block; exceptions propagate."""


CPU = device("cpu", 0)


def _return_zero() -> int:
    return 0


def _import_nothing(name: str) -> Any:
    return None


# flowedu.cuda replaces these: the number of usable GPUs, and the current one of this thread.
gpus: Callable[[], int] = _return_zero
current: Callable[[], int] = _return_zero
part: Callable[[str], Any] = _import_nothing             # a module of flowedu.cuda if a GPU exists


def place_at(x: TensorBase) -> int:
    """Return the device number of a tensor's memory block.

    For a global tensor, return 1 if its placement has GPUs, else 0.
    """
    global_layout = x.global_layout
    return x._device if global_layout is None else int(global_layout.placement.type == "cuda")


def device_of(place: int) -> device:
    """Return the device with a memory block's device number; 0 is the CPU, and 1 + k is cuda:k."""
    return device("cuda", place - 1) if place else CPU


def place_of(d: str | device | int | None) -> int:
    """Return the device number of `d` (None is the CPU); raise DeviceError if the device is not usable."""
    if d is None:
        return 0
    d = usable(f"cuda:{d}" if isinstance(d, int) else d)
    return d.index + 1 if d.type == "cuda" else 0


def usable(d: str | device) -> device:
    """Return the device; raise DeviceError if it is not usable.

    Args:
        d: name or device. "cuda" is the current GPU of this thread.
    """
    found = d if isinstance(d, device) else device(d)
    if found.type == "cuda":
        count = gpus()
        if count == 0:
            raise DeviceError("no GPU: this machine computes on the CPU only, and flow.cuda.is_available() "
                              "is False", expected="cpu", got=str(found),
                              fix='leave .cuda() out, or: device = "cuda" if flow.cuda.is_available() '
                              'else "cpu"')
        if d == "cuda":
            return device("cuda", current())
        if found.index >= count:
            raise DeviceError(f"there is no device {found}", expected=f"an index from 0 to {count - 1}",
                              got=str(found), fix="FLOWEDU_CUDA_DEVICES says how many the simulator has")
        return found
    if found.index:
        raise DeviceError("the CPU is one device", expected="cpu:0", got=str(found), fix='device("cpu")')
    return CPU


def index_of(d: str | device | int | None) -> int | None:
    """Return the index of a GPU, given as 1, "cuda:1", or flow.device("cuda"); None is returned unchanged."""
    return d if d is None or isinstance(d, int) else usable(d).index
