"""GPUs of this machine, with the names of torch.cuda, and kernels written in CUDA C.

FLOWEDU_CUDA=gpu|sim|off chooses where kernels run; by default on a GPU if one is found. `flow.ones(3,
device="cuda")` creates a tensor there, and engine.py runs the ops on it.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from flowedu.diagnostics.lazy_imports import lazy_import as _lazy_import
from flowedu.cuda import machine as _machine
from flowedu.tensor.devices import device as _device
from flowedu.tensor.construction import generator as _generator
from flowedu.tensor.devices.device import index_of as _index_of
from flowedu.tensor.devices.device import usable

# These modules import NumPy and PyCUDA, so they are loaded on first use.
__getattr__, __dir__ = _lazy_import(__name__, {
    "kernel": "flowedu.cuda.kernels", "Kernels": "flowedu.cuda.kernels",
    "profile": "flowedu.cuda.profiling", "CudaFault": "flowedu.cuda.faults",
    "OutOfMemoryError": "flowedu.errors",
    **dict.fromkeys(("CUDAGraph", "graph", "is_current_stream_capturing"), "flowedu.cuda.graphs"),
    **dict.fromkeys(("Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream",
                     "stream"),
                    "flowedu.cuda.streams")})


def is_available() -> bool:
    """Return True if kernels can run: on a GPU, or in the simulator (FLOWEDU_CUDA=sim)."""
    return _machine.kind() != "off" and _machine.machine().count > 0


def device_count() -> int:
    """Return the number of GPUs that CUDA finds; 0 without one."""
    return _machine.machine().count if is_available() else 0


def current_device() -> int:
    """Return the index of this thread's GPU.

    Raises:
        DeviceError: the machine has no GPU.
    """
    return _machine.machine().use() if is_available() else usable("cuda").index


def get_device_name(device: Any = None) -> str:
    """Return the name of a device, as its driver reports it.

    The simulator reports "flowedu CUDA simulator (CPU)".

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.

    Raises:
        DeviceError: the machine has no GPU.
    """
    if not is_available():
        return str(usable("cuda" if device is None else device))
    return _machine.machine().name(_index_of(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a device, as (major, minor).

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.

    Raises:
        DeviceError: the machine has no GPU.
    """
    index = _index_of(usable("cuda") if device is None else device)
    return tuple(_machine.machine().driver.Device(index).compute_capability())


def get_device_properties(device: Any = None) -> Any:
    """Return the name, major, minor, total_memory (bytes), multi_processor_count, and warp_size of a device.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.

    Raises:
        DeviceError: the machine has no GPU.
    """
    from types import SimpleNamespace

    major, minor = get_device_capability(device)
    d = _machine.machine().driver.Device(_index_of(usable("cuda") if device is None else device))
    limits = {str(k): v for k, v in d.get_attributes().items()}
    return SimpleNamespace(name=d.name(), major=major, minor=minor, total_memory=d.total_memory(),
                           warp_size=limits.get("WARP_SIZE", 32),
                           multi_processor_count=limits.get("MULTIPROCESSOR_COUNT", 1))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True if a GPU, or the simulator, supports tensors of bfloat16.

    Args:
        including_emulation: also count GPUs that convert to float32 to compute; default: True. With False,
            the compute capability must be 8.0 or higher.
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def set_device(device: Any) -> None:
    """Make a device the current one of this thread.

    Args:
        device: index, name, or flow.device of a GPU.

    Raises:
        DeviceError: the machine has no such GPU.
    """
    d = usable(f"cuda:{device}" if isinstance(device, int) else device)
    _machine.machine().use(d.index)


class device:
    """Context manager that makes a device the current one of this thread: `with flow.cuda.device(1):`.

    Args:
        device: index, name, or flow.device of a GPU; None: keep the current one.
    """

    def __init__(self, device: Any):
        self._index = _index_of(device)

    def __enter__(self) -> None:
        self._on = _machine.machine().on(self._index)
        self._on.__enter__()

    def __exit__(self, *exc) -> None:
        self._on.__exit__()


def synchronize(device: Any = None) -> None:
    """Wait until the device has finished its queued work, and raise the errors of its kernels.

    Without a GPU the function returns at once.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    if is_available():
        from flowedu.cuda.engine import wait
        wait(_index_of(device))


# ---- random numbers: all devices share the CPU's seed and count of draws, so that each gets the same numbers
def manual_seed(seed: int) -> None:
    """Seed the generator, which all devices share, like flow.manual_seed.

    Args:
        seed: int.
    """
    _generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generator, which all devices share, like flow.manual_seed.

    Args:
        seed: int.
    """
    _generator.manual_seed(seed)


def initial_seed() -> int:
    """Return the seed of the generator, which all devices share."""
    return _generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the generator, which all devices share, like flow.get_rng_state.

    Args:
        device: accepted for compatibility and ignored; default: "cuda".
    """
    return _generator.get_rng_state()


def get_rng_state_all() -> list:
    """Return a list with the state of the generator, once per device; [] without a GPU."""
    return [_generator.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator, which all devices share.

    Args:
        new_state: tensor that get_rng_state returned.
        device: accepted for compatibility and ignored; default: "cuda".
    """
    _generator.set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Set the state of the generator, which all devices share.

    Args:
        new_states: list that get_rng_state_all returned; [] changes nothing.
    """
    for state in new_states:
        _generator.set_rng_state(state)


# ---- memory
def _pool(device: Any):
    from flowedu.cuda.memory import settled
    return settled(_index_of(device)) if is_available() else None


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors use on a device; 0 without a GPU.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    return getattr(_pool(device), "live", 0)


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes allocated from the driver, in use or cached for reuse; 0 without a GPU.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    return getattr(_pool(device), "reserved", 0)


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of memory_allocated, in bytes.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    return getattr(_pool(device), "most_live", 0)


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of memory_reserved, in bytes.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    return getattr(_pool(device), "most_reserved", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset both peaks to the present values.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    pool = _pool(device)
    if pool is not None:
        pool.most_live, pool.most_reserved = pool.live, pool.reserved


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return a dict of byte counts and the numbers of allocations, allocation retries, and failures.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one. Without a GPU the dict is
            empty.
    """
    pool = _pool(device)
    return {} if pool is None else {
        "allocated_bytes.all.current": pool.live, "allocated_bytes.all.peak": pool.most_live,
        "reserved_bytes.all.current": pool.reserved, "reserved_bytes.all.peak": pool.most_reserved,
        "allocation.all.allocated": pool.allocations, "num_alloc_retries": pool.retries,
        "num_ooms": pool.failures}


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the (free, total) bytes of a device, as its driver reports them.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.

    Raises:
        DeviceError: the machine has no GPU.
    """
    m = _machine.machine()
    with m.on(_index_of(device)):
        return m.driver.mem_get_info()


def empty_cache() -> None:
    """Return cached memory to the devices."""
    if is_available():
        from flowedu.cuda.memory import empty_cache
        empty_cache()


def _count_gpus() -> int:
    """Return the number of GPUs that tensors can use, and start the engine."""
    if not is_available():
        return 0
    from flowedu.cuda.engine import started
    return started()


def _import_part(name: str) -> Any:
    """Return a module of this folder, for callers that may not import it when they are loaded."""
    return import_module(f"flowedu.cuda.{name}")


_device.gpus = _count_gpus
_device.current = current_device
_device.part = _import_part
