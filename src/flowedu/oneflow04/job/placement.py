"""Placements: the devices of an op or a value.

One process simulates all devices and numbers them consecutively.
"""
from __future__ import annotations

import math
import re
from collections.abc import Sequence

from flowedu.core.values.place import Place
from flowedu.errors import CheckError, JobBuildAndInferError

TAGS = ("cpu", "gpu", "cuda")
_FORM = re.compile(r"@?(\d+):(\d+)(?:-(\d+))?$")


class Placement:
    """A device tag and device ids "machine:first-last".

    Args:
        device_tag: "cpu" or "gpu" (or "cuda"). A job with ops on "gpu" runs on a GPU if the machine has one;
            otherwise both tags mean the same CPU devices, as in OneFlow's CPU build.
        machine_device_ids: "0:0", "0:0-3", or a list of such strings.
        hierarchy: the sizes of the grid of devices in row-major order, such as (2, 2) for 2-D SBP; None is
            one row.

    Attributes:
        device_tag: the device tag.
        pairs: a list of (machine, device), in order.
        hierarchy: the sizes of the grid, a tuple.
    """

    def __init__(self, device_tag: str, machine_device_ids, hierarchy: Sequence[int] | None = None):
        if device_tag not in TAGS:
            raise CheckError("scope.placement: unknown device tag", expected='"cpu" or "gpu"',
                             got=repr(device_tag), fix='scope.placement("cpu", "0:0")')
        texts = [machine_device_ids] if isinstance(machine_device_ids, str) else machine_device_ids
        if not isinstance(texts, (list, tuple)) or not texts:
            raise _bad_ids(machine_device_ids)
        self.device_tag = device_tag
        self.pairs: list[tuple[int, int]] = []
        for text in texts:
            found = _FORM.match(text) if isinstance(text, str) else None
            if found is None or int(found[3] or found[2]) < int(found[2]):
                raise _bad_ids(machine_device_ids)
            self.pairs += [(int(found[1]), d) for d in range(int(found[2]), int(found[3] or found[2]) + 1)]
        if len(set(self.pairs)) != len(self.pairs):
            raise CheckError("scope.placement: a device is named twice", expected="each device once",
                             got=repr(machine_device_ids), fix='placement("cpu", "0:0-1") is devices 0 and 1')
        self.hierarchy = grid_of(hierarchy, len(self.pairs), "scope.placement: hierarchy")
        self.devices: tuple[int, ...] = ()

    @property
    def on_gpu(self) -> bool:
        return self.device_tag != "cpu"

    @property
    def place(self) -> Place:
        """The devices as a Place, available after `locate`."""
        return Place(self.devices, self.hierarchy)

    def grid(self, hierarchy: Sequence[int] | None, what: str) -> Place:
        """Return the same devices in another grid; None is the placement's own grid."""
        return (self.place if hierarchy is None else Place(self.devices,
                                                           grid_of(hierarchy, len(self.devices), what)))

    def locate(self, machines: int, per_machine: int) -> Placement:
        """Set `devices`, the indices among all devices, and return self.

        Raise JobBuildAndInferError for a missing device.
        """
        need = 1 + max(d for _, d in self.pairs)
        for m, d in self.pairs:
            if m >= machines or d >= per_machine:
                raise JobBuildAndInferError(
                    f"scope.placement: there is no device {m}:{d}", got=str(self),
                    expected=f"machines 0 to {machines - 1} with devices 0 to {per_machine - 1}",
                    fix=f"flow.config.cpu_device_num({need}) before the first call gives every machine "
                    f"{need} virtual devices" if m < machines
                    else "flow.env.machine([...]) lists the machines")
        self.devices = tuple(m * per_machine + d for m, d in self.pairs)
        return self

    def __str__(self) -> str:
        grid = f" as {self.hierarchy}" if len(self.hierarchy) > 1 else ""
        return f"{self.device_tag} {', '.join(f'{m}:{d}' for m, d in self.pairs)}{grid}"


def grid_of(hierarchy: Sequence[int] | None, devices: int, what: str) -> tuple[int, ...]:
    """Return the sizes of a grid of `devices` devices; None is one row.

    Raise CheckError if the sizes do not match.
    """
    if hierarchy is None:
        return (devices,)
    sizes = tuple(hierarchy) if isinstance(hierarchy, (list, tuple)) else ()
    if not sizes or any(type(n) is not int or n < 1 for n in sizes) or math.prod(sizes) != devices:
        grid = (2, devices // 2) if devices % 2 == 0 else (devices,)
        raise CheckError(f"{what} is not a grid of the placement's devices", got=repr(hierarchy),
                         expected=f"sizes above 0 whose product is {devices}, the number of devices",
                         fix=f"{grid}, or a placement with more devices, or fewer")
    return sizes


def _bad_ids(got) -> CheckError:
    return CheckError("scope.placement: not device ids",
                      expected='"0:0", "0:0-3" (machine:first-last) or a list of such',
                      got=repr(got), fix='scope.placement("cpu", "0:0-1")')
