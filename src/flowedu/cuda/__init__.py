"""flow.cuda: the questions programs ask about GPUs, answered truthfully, and kernels of one's own.

FLOWEDU_CUDA=gpu|sim|off chooses where they run; without it on a GPU, if there is one. Tensors stay on the CPU in this
build: seeding all devices, emptying their cache and waiting for tensors have nothing to do.
"""
from __future__ import annotations

from flowedu.calls.later import later as _later
from flowedu.tensor.device import usable
from flowedu.cuda import machine as _machine

# They bring NumPy's and PyCUDA's machinery along: imported when they are asked for.
__getattr__, __dir__ = _later(__name__, {
    "kernel": "flowedu.cuda.kernels", "Kernels": "flowedu.cuda.kernels",
    "profile": "flowedu.cuda.profiling", "CudaFault": "flowedu.cuda.faults"})


def _index(device) -> int | None:
    """The index of a device as users write it: 1, "cuda:1", flow.device("cuda"); None: the current one."""
    if device is None or isinstance(device, int):
        return device
    kind, _, index = str(device).partition(":")
    return int(index or 0) if kind == "cuda" and (index or "0").isdigit() else usable(device).index


def is_available() -> bool:
    """Whether kernels can run: on a GPU, or in the simulator (FLOWEDU_CUDA=sim)."""
    return _machine.kind() != "off" and _machine.machine().count > 0


def device_count() -> int:
    return _machine.machine().count if is_available() else 0


def current_device() -> int:
    """The index of this thread's GPU. Raises DeviceError: there is none."""
    return _machine.machine().use() if is_available() else usable("cuda").index


def get_device_name(device=None) -> str:
    """What the device calls itself; the simulator says that it is one. Raises DeviceError: there is no GPU."""
    if not is_available():
        return str(usable("cuda" if device is None else device))
    return _machine.machine().name(_index(device))


def set_device(device) -> None:
    """Makes a device the current one of this thread. Raises DeviceError: there is no GPU, or not this one."""
    if not is_available():
        usable(f"cuda:{device}" if isinstance(device, int) else device)
    _machine.machine().use(_index(device))


def synchronize(device=None) -> None:
    """Waits until the device has done all that was asked of it. Without a GPU there is nothing to wait for."""
    if is_available():
        m = _machine.machine()
        with m.on(_index(device)):
            m.driver.Context.synchronize()


def manual_seed(seed: int) -> None:
    """Seeds nothing."""


def manual_seed_all(seed: int) -> None:
    """Seeds nothing."""


def empty_cache() -> None:
    """Frees nothing."""


def memory_allocated(device=None) -> int:
    """Bytes of the device that are taken; 0 without one."""
    return _machine.machine().allocated(_index(device)) if is_available() else 0


def max_memory_allocated(device=None) -> int:
    """The most bytes that were taken at a time; on a GPU, where the driver does not tell, those that are taken now."""
    return _machine.machine().allocated(_index(device), most=True) if is_available() else 0
