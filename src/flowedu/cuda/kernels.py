"""flow.cuda.kernel: compiles CUDA C to functions of NumPy arrays, for experiments."""
from __future__ import annotations

from typing import Any

from flowedu.cuda.arguments import Packed
from flowedu.cuda.faults import raised
from flowedu.cuda.machine import machine
from flowedu.cuda.signature import Signature, signatures
from flowedu.cuda.source import compiled, symbol
from flowedu.errors import ArgumentError, NameKeyError, format_value
from flowedu.errors.nearest import nearest


class Kernels:
    """Compiled kernels of one source; see `kernel`.

    `kernels(name, grid, block)` returns a kernel with its launch shape.

    Args:
        source: CUDA C with one or more `__global__ void` functions.
        options: options of the compiler, such as "-DTILE=16"; default: none.

    Raises:
        ArgumentError: the source has no kernel.
    """

    def __init__(self, source: str, options: tuple[str, ...] = ()):
        self.source, self.signatures = source, signatures(source)
        self._machine = machine()
        self._functions: dict[tuple[str, int], Any] = {}
        if not self.signatures:
            raise ArgumentError("kernel: the source has no kernel",
                                expected="a function that begins with __global__ void",
                                got=f"{len(source.splitlines())} lines without one")
        self._code = compiled(source, self._machine, tuple(options))

    def __call__(self, name: str, grid, block, shared: int = 0) -> Launch:
        """Return the kernel `name` with a grid of blocks and a block of threads, each an int or up to three.

        Args:
            shared: bytes of dynamic shared memory.

        Raises NameKeyError: the source has no such kernel; ArgumentError: a size exceeds the limits of the
        device.
        """
        if name not in self.signatures:
            near = nearest(name, self.signatures)
            raise NameKeyError(f"kernel: the source has no kernel {name!r}",
                               expected=", ".join(self.signatures),
                               got=repr(name), fix=f"did you mean {near!r}?" if near else
                               "templates must be instantiated in the source")
        return Launch(self, self.signatures[name], _shape("grid", grid), _shape("block", block), shared)

    def function(self, name: str):
        """Return PyCUDA's function of this name, on the current device."""
        index, driver = self._machine.use(), self._machine.driver
        if (name, index) not in self._functions:
            try:
                module = driver.module_from_buffer(self._code)
                self._functions[name, index] = module.get_function(symbol(name, self._code))
            except driver.Error as e:
                raise raised(e, self._machine) from None
        return self._functions[name, index]


def kernel(source: str, options: tuple[str, ...] = ()) -> Kernels:
    """Compile CUDA C, and return its kernels.

        add = flow.cuda.kernel('''__global__ void add(const float* x, float* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] += x[i];
        }''')
        add("add", grid=4, block=256)(x, y, 1000)

    NumPy arrays are copied to the device, and back unless the parameter is const. Other arrays must have a
    `__cuda_array_interface__`. Scalars are Python or NumPy numbers. All arguments are checked against the
    parameters.

    Args:
        source: CUDA C with one or more `__global__ void` functions.
        options: options of the compiler, such as "-DTILE=16"; default: none.

    Raises:
        KernelError: the source does not compile.
        DeviceError: the machine has no GPU, and FLOWEDU_CUDA is not "sim".
    """
    if not isinstance(source, str):
        raise ArgumentError("kernel: the source is not a text", expected="CUDA C", got=format_value(source))
    return Kernels(source, options)


class Launch:
    """Kernel with its grid and block. Calling it with the arguments runs the kernel until its end."""

    def __init__(self, kernels: Kernels, signature: Signature, grid: tuple, block: tuple, shared: int):
        self.kernels, self.signature, self.grid = kernels, signature, grid
        self.block, self.shared = block, shared
        self._check()

    def _check(self) -> None:
        limits = self.kernels._machine.limits()
        name, threads = self.signature.name, self.block[0] * self.block[1] * self.block[2]
        if threads > limits["MAX_THREADS_PER_BLOCK"]:
            raise ArgumentError(f"{name}: a block of {threads} threads", got=f"block={self.block}",
                                expected=f"at most {limits['MAX_THREADS_PER_BLOCK']}",
                                fix="more blocks of fewer threads")
        for role, shape, key in (("block", self.block, "MAX_BLOCK_DIM_"), ("grid", self.grid,
                                                                           "MAX_GRID_DIM_")):
            for axis, n in zip("XYZ", shape):
                if n > limits[key + axis]:
                    raise ArgumentError(f"{name}: the {role} is too large along {axis.lower()}",
                                        expected=f"at most {limits[key + axis]}", got=f"{role}={shape}")
        if not 0 <= self.shared <= limits["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise ArgumentError(f"{name}: {self.shared} bytes of shared memory", expected="0 to "
                                f"{limits['MAX_SHARED_MEMORY_PER_BLOCK_OPTIN']} bytes",
                                got=f"shared={self.shared}")

    def __call__(self, *arguments) -> None:
        m = self.kernels._machine
        f = self.kernels.function(self.signature.name)
        packed = None
        try:
            packed = Packed(self.signature, arguments, m)
            if self.shared > 48 << 10:
                f.set_attribute(m.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, self.shared)
            f._launch_kernel(self.grid, self.block, packed.bytes, self.shared, None)
            m.driver.Context.synchronize()
            packed.finish()
        except m.driver.Error as e:
            raise raised(e, m) from None
        finally:
            if packed is not None:
                packed.free()


def _shape(what: str, n) -> tuple[int, int, int]:
    """Return an int, or up to three of them, as a tuple of three."""
    numbers = tuple(n) if isinstance(n, (tuple, list)) else (n,)
    are_integers = all(hasattr(i, "__index__") and not isinstance(i, bool) for i in numbers)
    if not are_integers or not 1 <= len(numbers) <= 3 or any(int(i) < 1 for i in numbers):
        raise ArgumentError(f"kernel: {what} is no shape of threads",
                            expected="a positive number, or up to three", got=f"{what}={n!r}")
    x, y, z = (*map(int, numbers), 1, 1)[:3]
    return x, y, z
