"""flow.cuda: the GPUs of this machine, as PyTorch's programs ask for them, and kernels of one's own.

FLOWEDU_CUDA=gpu|sim|off chooses where they run; without it on a GPU, if there is one. `flow.ones(3, device="cuda")` is then
a tensor there, and ops on it are run by engine.py.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from flowedu.diagnostics.lazy_imports import lazy_import as _lazy_import
from flowedu.cuda import machine as _machine
from flowedu.tensor import device as _device
from flowedu.tensor import generator as _generator
from flowedu.tensor.device import index_of as _index_of
from flowedu.tensor.device import usable

# They bring NumPy's and PyCUDA's machinery along: imported when they are asked for.
__getattr__, __dir__ = _lazy_import(__name__, {
    "kernel": "flowedu.cuda.kernels", "Kernels": "flowedu.cuda.kernels",
    "profile": "flowedu.cuda.profiling", "CudaFault": "flowedu.cuda.faults",
    "OutOfMemoryError": "flowedu.errors",
    **dict.fromkeys(("CUDAGraph", "graph", "is_current_stream_capturing"), "flowedu.cuda.graphs"),
    **dict.fromkeys(("Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"),
                    "flowedu.cuda.streams")})


def is_available() -> bool:
    """Whether kernels can run: on a GPU, or in the simulator (FLOWEDU_CUDA=sim)."""
    return _machine.kind() != "off" and _machine.machine().count > 0


def device_count() -> int:
    """How many GPUs CUDA sees: 0 where there is none."""
    return _machine.machine().count if is_available() else 0


def current_device() -> int:
    """The index of this thread's GPU. Raises DeviceError: there is none."""
    return _machine.machine().use() if is_available() else usable("cuda").index


def get_device_name(device: Any = None) -> str:
    """What the device calls itself; the simulator says that it is one. Raises DeviceError: there is no GPU."""
    if not is_available():
        return str(usable("cuda" if device is None else device))
    return _machine.machine().name(_index_of(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(major, minor) of what the device can. Raises DeviceError: there is no GPU."""
    index = _index_of(usable("cuda") if device is None else device)
    return tuple(_machine.machine().driver.Device(index).compute_capability())


def get_device_properties(device: Any = None) -> Any:
    """name, major, minor, total_memory, multi_processor_count and warp_size of a device. Raises DeviceError: there is no
    GPU."""
    from types import SimpleNamespace

    major, minor = get_device_capability(device)
    d = _machine.machine().driver.Device(_index_of(usable("cuda") if device is None else device))
    of = {str(k): v for k, v in d.get_attributes().items()}
    return SimpleNamespace(name=d.name(), major=major, minor=minor, total_memory=d.total_memory(),
                           multi_processor_count=of.get("MULTIPROCESSOR_COUNT", 1), warp_size=of.get("WARP_SIZE", 32))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be there: on every GPU, and in the simulator. Without emulation: whether the GPU
    itself computes with them."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def set_device(device: Any) -> None:
    """Makes a device the current one of this thread. Raises DeviceError: there is no GPU, or not this one."""
    d = usable(f"cuda:{device}" if isinstance(device, int) else device)
    _machine.machine().use(d.index)


class device:
    """`with flow.cuda.device(1):` makes a device the current one of this thread, for the length of the block."""

    def __init__(self, device: Any):
        self._index = _index_of(device)

    def __enter__(self) -> None:
        self._on = _machine.machine().on(self._index)
        self._on.__enter__()

    def __exit__(self, *exc) -> None:
        self._on.__exit__()


def synchronize(device: Any = None) -> None:
    """Waits until the device has done all that was asked of it. Raises what went wrong in a kernel meanwhile. Without a GPU
    there is nothing to wait for."""
    if is_available():
        from flowedu.cuda.engine import wait
        wait(_index_of(device))


# ---- random numbers: a seed and a count of draws, those of the CPU, so that tensors everywhere get the same numbers
def manual_seed(seed: int) -> None:
    """Seeds the generator, which all devices share: flow.manual_seed."""
    _generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generator, which all devices share: flow.manual_seed."""
    _generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed of the generator, which all devices share."""
    return _generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of the generator, which all devices share: flow.get_rng_state."""
    return _generator.get_rng_state()


def get_rng_state_all() -> list:
    """The state of the generator, once for each device; [] without one."""
    return [_generator.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Brings the generator, which all devices share, to a state of get_rng_state."""
    _generator.set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Brings the generator to the state of get_rng_state_all; [] changes nothing."""
    for state in new_states:
        _generator.set_rng_state(state)


# ---- memory
def _pool(device: Any):
    from flowedu.cuda.memory import settled
    return settled(_index_of(device)) if is_available() else None


def memory_allocated(device: Any = None) -> int:
    """Bytes of the device that tensors use; 0 without one."""
    return getattr(_pool(device), "live", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the device: those in use, and those kept for reuse."""
    return getattr(_pool(device), "reserved", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors used at a time."""
    return getattr(_pool(device), "most_live", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from the device at a time."""
    return getattr(_pool(device), "most_reserved", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets the two maxima start from what is in use now."""
    pool = _pool(device)
    if pool is not None:
        pool.most_live, pool.most_reserved = pool.live, pool.reserved


def memory_stats(device: Any = None) -> dict[str, int]:
    """Bytes, and how often memory was asked for, asked for again after the caches were freed, and not found."""
    pool = _pool(device)
    return {} if pool is None else {
        "allocated_bytes.all.current": pool.live, "allocated_bytes.all.peak": pool.most_live,
        "reserved_bytes.all.current": pool.reserved, "reserved_bytes.all.peak": pool.most_reserved,
        "allocation.all.allocated": pool.allocations, "num_alloc_retries": pool.retries, "num_ooms": pool.failures}


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as its driver says. Raises DeviceError: there is no GPU."""
    m = _machine.machine()
    with m.on(_index_of(device)):
        return m.driver.mem_get_info()


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the devices."""
    if is_available():
        from flowedu.cuda.memory import empty_cache
        empty_cache()


def _started() -> int:
    """How many GPUs tensors can be on; the engine is ready for them then."""
    if not is_available():
        return 0
    from flowedu.cuda.engine import started
    return started()


_device.gpus = _started
_device.current = current_device
_device.part = lambda name: import_module(f"flowedu.cuda.{name}")
