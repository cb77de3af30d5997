"""Written by `make stubs`: do not edit."""
from collections.abc import Iterator
from flowedu.cuda import (
    again as again, backends as backends, blas as blas, faults as faults, folders as folders, launch as launch,
    machine as machine, memory as memory, modules as modules, signature as signature, source as source, streams as streams,
    view as view)
from flowedu.cuda.faults import CudaFault as CudaFault
from flowedu.cuda.graphs import CUDAGraph as CUDAGraph, CUDAGraph as _CUDAGraph
from flowedu.cuda.kernels import Kernels as Kernels, Kernels as _Kernels
from flowedu.cuda.profiling import Profile
from flowedu.cuda.streams import Event as Event, Stream as Stream, Stream as _Stream
from flowedu.errors import OutOfMemoryError as OutOfMemoryError
from flowedu.tensor.devices.device import device as _device
from typing import Any

def StreamContext(s: _Stream | None) -> Iterator[_Stream | None]:
    """Queue this thread's work on a stream inside a `with` block; its device becomes the current one."""
def current_device() -> int: """Return the index of this thread's GPU."""
def current_stream(device: Any = None) -> _Stream: """Return the stream on which this thread queues work of a device."""
def default_stream(device: Any = None) -> _Stream: """Return the default stream of a device."""
class device:
    """Context manager that makes a device the current one of this thread: `with flow.cuda.device(1):`."""
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc) -> Any: ...
    def __init__(self, device: Any) -> None: ...
def device_count() -> int: """Return the number of GPUs that CUDA finds; 0 without one."""
def empty_cache() -> None: """Return cached memory to the devices."""
def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a device, as (major, minor)."""
def get_device_name(device: Any = None) -> str: """Return the name of a device, as its driver reports it."""
def get_device_properties(device: Any = None) -> Any:
    """Return the name, major, minor, total_memory (bytes), multi_processor_count, and warp_size of a device."""
def get_rng_state(device: Any = 'cuda') -> Any:
    """Return the state of the generator, which all devices share, like flow.get_rng_state."""
def get_rng_state_all() -> list: """Return a list with the state of the generator, once per device; [] without a GPU."""
def graph(cuda_graph: _CUDAGraph, pool: Any = None, stream: _Stream | None = None) -> Iterator[None]:
    """Record the calls of a block on cuda into a graph, instead of running them."""
def initial_seed() -> int: """Return the seed of the generator, which all devices share."""
def is_available() -> bool: """Return True if kernels can run: on a GPU, or in the simulator (FLOWEDU_CUDA=sim)."""
def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True if a GPU, or the simulator, supports tensors of bfloat16."""
def is_current_stream_capturing() -> bool: """Return True if work on the current stream is recorded into a graph."""
def kernel(source: str, options: tuple[str, ...] = ...) -> _Kernels: """Compile CUDA C, and return its kernels."""
def manual_seed(seed: int) -> None: """Seed the generator, which all devices share, like flow.manual_seed."""
def manual_seed_all(seed: int) -> None: """Seed the generator, which all devices share, like flow.manual_seed."""
def max_memory_allocated(device: Any = None) -> int: """Return the peak of memory_allocated, in bytes."""
def max_memory_reserved(device: Any = None) -> int: """Return the peak of memory_reserved, in bytes."""
def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the (free, total) bytes of a device, as its driver reports them."""
def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors use on a device; 0 without a GPU."""
def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes allocated from the driver, in use or cached for reuse; 0 without a GPU."""
def memory_stats(device: Any = None) -> dict[str, int]:
    """Return a dict of byte counts and the numbers of allocations, allocation retries, and failures."""
def profile(file=None) -> Iterator[Profile]:
    """Count the work of all kernels launched in the block, and print the table at the end."""
def reset_peak_memory_stats(device: Any = None) -> None: """Reset both peaks to the present values."""
def set_device(device: Any) -> None: """Make a device the current one of this thread."""
def set_rng_state(new_state: Any, device: Any = 'cuda') -> None:
    """Set the state of the generator, which all devices share."""
def set_rng_state_all(new_states: Any) -> None: """Set the state of the generator, which all devices share."""
def set_stream(s: _Stream) -> None: """Queue this thread's later work of the stream's device on a stream."""
def stream(s: _Stream | None) -> Iterator[_Stream | None]:
    """Queue this thread's work on a stream inside a `with` block; its device becomes the current one."""
def synchronize(device: Any = None) -> None:
    """Wait until the device has finished its queued work, and raise the errors of its kernels."""
def usable(d: str | _device) -> _device: """Return the device; raise DeviceError if it is not usable."""
