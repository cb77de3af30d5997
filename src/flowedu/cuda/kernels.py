"""flow.cuda.kernel: CUDA C in, calls with NumPy arrays out, for experiments."""
from __future__ import annotations

from flowedu.cuda.arguments import Packed
from flowedu.cuda.faults import raised
from flowedu.cuda.machine import machine
from flowedu.cuda.signature import Signature, signatures
from flowedu.cuda.source import compiled, symbol
from flowedu.errors import ArgumentError, NameKeyError, told_value
from flowedu.errors.nearest import nearest


class Kernels:
    """The kernels of one source. `kernels(name, grid, block)` is one of them with a shape of threads; see `kernel`."""

    def __init__(self, source: str, options: tuple[str, ...] = ()):
        self.source, self.signatures = source, signatures(source)
        self._machine, self._functions = machine(), {}
        if not self.signatures:
            raise ArgumentError("kernel: the source has no kernel", expected="a function that begins with __global__ void",
                                got=f"{len(source.splitlines())} lines without one")
        self._code = compiled(source, self._machine, tuple(options))

    def __call__(self, name: str, grid, block, shared: int = 0) -> Launch:
        """The kernel `name` with a grid of blocks and a block of threads, each a number or up to three.

        Args:
            shared: bytes of dynamic shared memory.
        Raises NameKeyError: there is no such kernel; ArgumentError: more than a device can do."""
        if name not in self.signatures:
            near = nearest(name, self.signatures)
            raise NameKeyError(f"kernel: the source has no kernel {name!r}", expected=", ".join(self.signatures),
                               got=repr(name), fix=f"did you mean {near!r}?" if near else
                               "templates must be instantiated in the source")
        return Launch(self, self.signatures[name], _shape("grid", grid), _shape("block", block), shared)

    def function(self, name: str):
        """PyCUDA's function of this name, on the current device."""
        index, driver = self._machine.use(), self._machine.driver
        if (name, index) not in self._functions:
            try:
                module = driver.module_from_buffer(self._code)
                self._functions[name, index] = module.get_function(symbol(name, self._code))
            except driver.Error as e:
                raise raised(e, self._machine) from None
        return self._functions[name, index]


def kernel(source: str, options: tuple[str, ...] = ()) -> Kernels:
    """Compiles CUDA C and gives its kernels:

        add = flow.cuda.kernel('''__global__ void add(const float* x, float* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] += x[i];
        }''')
        add("add", grid=4, block=256)(x, y, 1000)

    Arrays are NumPy's (copied to the device, and back unless the parameter is const), or have a `__cuda_array_interface__`;
    numbers are Python's or NumPy's. All are checked against the kernel's parameters.

    Args:
        options: for the compiler, such as "-DTILE=16".
    Raises KernelError: the source does not compile; DeviceError: there is no GPU, and FLOWEDU_CUDA=sim was not chosen."""
    if not isinstance(source, str):
        raise ArgumentError("kernel: the source is not a text", expected="CUDA C", got=told_value(source))
    return Kernels(source, options)


class Launch:
    """A kernel with its grid and block: call it with the arguments. Returns when the kernel has ended."""

    def __init__(self, kernels: Kernels, signature: Signature, grid: tuple, block: tuple, shared: int):
        self.kernels, self.signature, self.grid, self.block, self.shared = kernels, signature, grid, block, shared
        self._check()

    def _check(self) -> None:
        of = self.kernels._machine.limits()
        name, threads = self.signature.name, self.block[0] * self.block[1] * self.block[2]
        if threads > of["MAX_THREADS_PER_BLOCK"]:
            raise ArgumentError(f"{name}: a block of {threads} threads", expected=f"at most {of['MAX_THREADS_PER_BLOCK']}",
                                got=f"block={self.block}", fix="more blocks of fewer threads")
        for what, shape, key in (("block", self.block, "MAX_BLOCK_DIM_"), ("grid", self.grid, "MAX_GRID_DIM_")):
            for axis, n in zip("XYZ", shape):
                if n > of[key + axis]:
                    raise ArgumentError(f"{name}: the {what} is too large along {axis.lower()}",
                                        expected=f"at most {of[key + axis]}", got=f"{what}={shape}")
        if not 0 <= self.shared <= of["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise ArgumentError(f"{name}: {self.shared} bytes of shared memory", expected="0 to "
                                f"{of['MAX_SHARED_MEMORY_PER_BLOCK_OPTIN']} bytes", got=f"shared={self.shared}")

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
    """A number or up to three of them as three."""
    numbers = tuple(n) if isinstance(n, (tuple, list)) else (n,)
    whole = all(hasattr(i, "__index__") and not isinstance(i, bool) for i in numbers)
    if not whole or not 1 <= len(numbers) <= 3 or any(int(i) < 1 for i in numbers):
        raise ArgumentError(f"kernel: {what} is no shape of threads", expected="a positive number, or up to three",
                            got=f"{what}={n!r}")
    return (*map(int, numbers), 1, 1)[:3]
