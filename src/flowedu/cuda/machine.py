"""Selection of the machine that runs CUDA code: a GPU, the simulator, or none.

FLOWEDU_CUDA=gpu|sim|off selects it; the default is a GPU if one is available. This module does nothing, and
does not import PyCUDA, before its first use.
"""
from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import warnings
from typing import Any

from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.errors import DeviceError

register_fields(gpu=None)                        # the context of the thread's current GPU

SET_UP = "`make test-cuda` sets up PyCUDA and the simulator; FLOWEDU_CUDA=sim then chooses it"


@functools.cache
def gpus() -> int:
    """Return the number of GPUs that the driver finds; 0 without a driver."""
    import ctypes

    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
    except OSError:
        return 0
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def kind() -> str:
    """Return "gpu", "sim" or "off". Raises DeviceError: FLOWEDU_CUDA has another value."""
    value = os.environ.get("FLOWEDU_CUDA", "")
    if value not in ("", "gpu", "sim", "off"):
        raise DeviceError("FLOWEDU_CUDA has a value that means nothing", expected="gpu, sim or off",
                          got=repr(value))
    if value:
        return value
    import importlib.util

    return "gpu" if importlib.util.find_spec("pycuda") and gpus() else "off"


class Machine:
    """Devices, with PyCUDA's driver module as `driver`.

    A thread uses the primary context of one device at a time.

    Attributes: kind, "gpu" or "sim"; library, the simulator's library or None; give, a function of the
    simulator or None; checks, True if every kernel is checked (FLOWEDU_CUDA_CHECK=1 in the simulator).
    Pools call `give` with (address, requested bytes, number of the stream), so that the simulator can check
    the ends of arrays.
    """

    def __init__(self, kind: str):
        from flowedu.cuda.sim.compiler import wants_checks

        self.kind = kind
        self._contexts: dict[int, Any] = {}
        self._limits: dict[int, dict[str, int]] = {}
        self.library: Any = _load_simulator() if kind == "sim" else None
        self.driver = _import_driver(kind)
        self.give = self.library and self.library.cudasim_give
        self.checks = self.library is not None and wants_checks()
        if self.give:
            _wrap_pools(self.driver, self.give)
        self.count = self.driver.Device.count()
        if not self.count:
            raise DeviceError("the driver has no GPU", expected="FLOWEDU_CUDA=gpu with a GPU",
                              got="0 devices", fix=SET_UP)
        atexit.register(self._leave)

    def use(self, index: int | None = None) -> int:
        """Make a device the current one of this thread, and return its index. None keeps it (initially 0)."""
        held = thread_state.gpu
        if index is None:
            index = held.index if held else 0
        if held and held.index == index:
            return index
        if not 0 <= index < self.count:
            raise DeviceError(f"there is no device cuda:{index}",
                              expected=f"an index from 0 to {self.count - 1}",
                              got=str(index), fix="FLOWEDU_CUDA_DEVICES says how many the simulator has"
                              if self.kind == "sim" else "")
        if held:
            held.leave()
        thread_state.gpu = _Held(self.driver, self.context(index), index)
        return index

    def context(self, index: int):
        """Return the primary context of a device."""
        if index not in self._contexts:
            self._contexts[index] = self.driver.Device(index).retain_primary_context()
        return self._contexts[index]

    def on(self, index: int | None) -> _On:
        """Return a context manager: `with machine.on(1) as index:`. None keeps the current device."""
        return _On(self, index)

    def name(self, index: int | None = None) -> str:
        with self.on(index) as i:
            return self.driver.Device(i).name()

    def limits(self) -> dict[str, int]:
        """Return the attributes of this thread's device by name, such as MAX_THREADS_PER_BLOCK."""
        index = self.use()
        if index not in self._limits:
            self._limits[index] = {str(k): v for k, v in self.driver.Device(index).get_attributes().items()}
        return self._limits[index]

    def _leave(self) -> None:
        """Pop this thread's context, as a context that is current when the process ends aborts it.

        The contexts of other threads end with them.
        """
        warnings.filterwarnings("ignore", ".*out-of-thread context could not be cleaned up")
        held = thread_state.gpu
        if held:
            held.leave()
            thread_state.gpu = None
        self._contexts.clear()


class _On:
    """Context manager that makes a device current. It is a class for speed, as every launch uses it."""

    __slots__ = ("before", "index", "machine")

    def __init__(self, machine: Machine, index: int | None):
        self.machine, self.index = machine, index

    def __enter__(self) -> int:
        self.before = self.machine.use()
        return self.before if self.index is None else self.machine.use(self.index)

    def __exit__(self, *exc) -> None:
        self.machine.use(self.before)


class _Held:
    """Context on the stack of this thread, popped when the thread ends."""

    def __init__(self, driver, context, index: int):
        self.driver, self.index, self.context = driver, index, context
        context.push()

    def leave(self) -> None:
        if self.context is not None:
            self.context = None
            self.driver.Context.pop()

    def __del__(self):
        if not sys.is_finalizing():
            self.leave()


_starting = threading.Lock()
_machine: Machine | None = None


def machine() -> Machine:
    """Return the machine, started on first use. Its device is current in this thread.

    Raises DeviceError: CUDA is off, or a requirement is missing.
    """
    global _machine
    with _starting:
        if _machine is None:
            selected = kind()
            if selected == "off":
                got = "no PyCUDA" if gpus() else "no GPU"
                if os.environ.get("FLOWEDU_CUDA"):
                    got = "FLOWEDU_CUDA=off"
                raise DeviceError("there is no GPU", expected="a GPU and PyCUDA, or the simulator", got=got,
                                  fix=SET_UP)
            _machine = Machine(selected)
    _machine.use()
    return _machine


def _import_driver(kind: str):
    try:
        import pycuda.driver as driver
    except ImportError as e:
        if "libcuda" in str(e):
            raise DeviceError("there is no CUDA driver", expected="libcuda.so.1", got=str(e),
                              fix=f"install NVIDIA's driver; without a GPU {SET_UP}") from None
        if "undefined symbol" in str(e):
            raise DeviceError("the CUDA driver is too old for this PyCUDA",
                              expected="the driver of CUDA 13 (580 or newer)",
                              got=str(e),
                              fix="install a newer driver, or build PyCUDA with an older toolkit") from None
        raise DeviceError("PyCUDA is not installed", expected="pycuda 2026.1", got=str(e),
                          fix=SET_UP) from None
    try:
        driver.init()
    except driver.Error as e:
        fix = "" if kind == "sim" else f"is a driver loaded (nvidia-smi)? Without a GPU {SET_UP}"
        raise DeviceError("the CUDA driver does not start", expected="a GPU with a driver", got=str(e),
                          fix=fix) from None
    return driver


def _load_simulator():
    """Load the simulated libcuda.so.1 before PyCUDA looks for it, and put its nvcc first in PATH."""
    import ctypes
    from pathlib import Path

    from flowedu.cuda.folders import waiting
    from flowedu.cuda.sim.build import build, library
    from flowedu.cuda.toolkit import toolkit

    if "pycuda._driver" in sys.modules:
        raise DeviceError("PyCUDA was imported before the simulator was there",
                          expected="flow.cuda first, then pycuda", got="import pycuda.driver before it",
                          fix="call flow.cuda.is_available() before you import pycuda")
    path = library()
    if not path.exists():
        cuda_toolkit = toolkit()
        if cuda_toolkit is None:
            raise DeviceError("the CUDA simulator is not set up", expected=str(path), got="no such file",
                              fix=SET_UP)
        with waiting("compiling the CUDA simulator ..."):
            path = build(cuda_toolkit.headers)
    os.environ["PATH"] = f"{path.parent / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ["FLOWEDU_CUDA_PYTHON"] = sys.executable
    os.environ["FLOWEDU_CUDA_PATH"] = str(Path(__file__).parents[2])
    simulator = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    for text in ("cudasim_report", "cudasim_profile_stop"):
        getattr(simulator, text).restype = ctypes.c_char_p
    simulator.cudasim_give.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    simulator.cudasim_part.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool, ctypes.c_void_p]
    simulator.cudasim_give.restype = simulator.cudasim_part.restype = None
    return simulator


def _wrap_pools(driver, give) -> None:
    """Let PyCUDA's pools, which round sizes up, report the requested bytes to the simulator."""
    device, host = driver.DeviceMemoryPool.allocate, driver.PageLockedMemoryPool.allocate

    @functools.wraps(device)
    def allocate(self, size):
        allocation = device(self, size)
        give(int(allocation), size, None)
        return allocation

    @functools.wraps(host)
    def allocate_host(self, *args, **kwargs):
        allocation = host(self, *args, **kwargs)
        give(allocation.ctypes.data, allocation.nbytes, None)
        return allocation

    driver.DeviceMemoryPool.allocate, driver.PageLockedMemoryPool.allocate = allocate, allocate_host
