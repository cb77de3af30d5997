"""Written by `make stubs`: do not edit."""
from collections.abc import Iterator
from flowedu.cuda import (
    again as again, backends as backends, blas as blas, device as device, faults as faults, folders as folders,
    launch as launch, machine as machine, memory as memory, modules as modules, signature as signature, source as source,
    streams as streams, view as view)
from flowedu.cuda.faults import CudaFault as CudaFault
from flowedu.cuda.graphs import CUDAGraph as CUDAGraph, CUDAGraph as _CUDAGraph
from flowedu.cuda.kernels import Kernels as Kernels, Kernels as _Kernels
from flowedu.cuda.profiling import Profile
from flowedu.cuda.streams import Event as Event, Stream as Stream, Stream as _Stream
from flowedu.errors import OutOfMemoryError as OutOfMemoryError
from flowedu.tensor.device import device as _device
from typing import Any

def StreamContext(s: _Stream | None) -> Iterator[_Stream | None]:
    """Inside it this thread's work is queued on a stream, whose device is the current one."""
def current_device() -> int: """The index of this thread's GPU."""
def current_stream(device: Any = None) -> _Stream:
    """The stream that this thread queues work on, on a device (default: the current one)."""
def default_stream(device: Any = None) -> _Stream: """The stream that work is queued on where nothing else is said."""
def device_count() -> int: """How many GPUs CUDA sees: 0 where there is none."""
def empty_cache() -> None: """Gives memory that is kept for reuse back to the devices."""
def get_device_capability(device: Any = None) -> tuple[int, int]: """(major, minor) of what the device can."""
def get_device_name(device: Any = None) -> str: """What the device calls itself; the simulator says that it is one."""
def get_device_properties(device: Any = None) -> Any:
    """name, major, minor, total_memory, multi_processor_count and warp_size of a device."""
def get_rng_state(device: Any = 'cuda') -> Any:
    """The state of the generator, which all devices share: flow.get_rng_state."""
def get_rng_state_all() -> list: """The state of the generator, once for each device; [] without one."""
def graph(cuda_graph: _CUDAGraph, pool: Any = None, stream: _Stream | None = None) -> Iterator[None]:
    """Inside it calls on cuda are kept in the graph instead of done."""
def initial_seed() -> int: """The seed of the generator, which all devices share."""
def is_available() -> bool: """Whether kernels can run: on a GPU, or in the simulator (FLOWEDU_CUDA=sim)."""
def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be there: on every GPU, and in the simulator."""
def is_current_stream_capturing() -> bool: """Whether what is queued now is kept in a graph."""
def kernel(source: str, options: tuple[str, ...] = ...) -> _Kernels: """Compiles CUDA C and gives its kernels:"""
def manual_seed(seed: int) -> None: """Seeds the generator, which all devices share: flow.manual_seed."""
def manual_seed_all(seed: int) -> None: """Seeds the generator, which all devices share: flow.manual_seed."""
def max_memory_allocated(device: Any = None) -> int: """The most bytes that tensors used at a time."""
def max_memory_reserved(device: Any = None) -> int: """The most bytes that were taken from the device at a time."""
def mem_get_info(device: Any = None) -> tuple[int, int]: """(free, total) bytes of the device, as its driver says."""
def memory_allocated(device: Any = None) -> int: """Bytes of the device that tensors use; 0 without one."""
def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the device: those in use, and those kept for reuse."""
def memory_stats(device: Any = None) -> dict[str, int]:
    """Bytes, and how often memory was asked for, asked for again after the caches were freed, and not found."""
def profile(file=None) -> Iterator[Profile]:
    """Counts the loads, stores, sectors, bank conflicts, barriers, atomics and divergent branches of all kernels launched inside."""
def reset_peak_memory_stats(device: Any = None) -> None: """Lets the two maxima start from what is in use now."""
def set_device(device: Any) -> None: """Makes a device the current one of this thread."""
def set_rng_state(new_state: Any, device: Any = 'cuda') -> None:
    """Brings the generator, which all devices share, to a state of get_rng_state."""
def set_rng_state_all(new_states: Any) -> None:
    """Brings the generator to the state of get_rng_state_all; [] changes nothing."""
def set_stream(s: _Stream) -> None: """This thread's work on the stream's device is queued on it from here on."""
def stream(s: _Stream | None) -> Iterator[_Stream | None]:
    """Inside it this thread's work is queued on a stream, whose device is the current one."""
def synchronize(device: Any = None) -> None: """Waits until the device has done all that was asked of it."""
def usable(d: str | _device) -> _device: """Return the device if it is usable; "cuda" is this thread's current one."""
