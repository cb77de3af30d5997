"""Arguments of a kernel: Python values are checked against its parameters, and packed into bytes."""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.cuda.signature import Parameter, Signature
from flowedu.errors import CallError, DTypeError, format_value

# NumPy types of C types. Vectors have the type of their elements.
SCALARS = {
    "float": "f4", "double": "f8", "half": "f2", "__half": "f2", "bool": "?", "char": "i1",
    "signed char": "i1",
    "short": "i2", "short int": "i2", "int": "i4", "long": "i8", "long int": "i8", "long long": "i8",
    "long long int": "i8", "unsigned": "u4",
    "unsigned char": "u1", "unsigned short": "u2", "unsigned int": "u4", "unsigned long": "u8",
    "unsigned long long": "u8",
    "uchar": "u1", "ushort": "u2", "uint": "u4", "ulong": "u8", "size_t": "u8", "ptrdiff_t": "i8",
    **{f"{sign}int{bits}_t": f"{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
VECTORS = {f"{base}{n}": (SCALARS[base], n) for n in (1, 2, 3, 4)
           for base in ("float", "double", "char", "uchar", "short", "ushort", "int", "uint", "long",
                        "ulong")}


def element(kind: str) -> tuple[np.dtype, int] | None:
    """Return (dtype, number of elements) of a C type, or None for a type that the source defines."""
    if kind in SCALARS:
        return np.dtype(SCALARS[kind]), 1
    return (np.dtype(VECTORS[kind][0]), VECTORS[kind][1]) if kind in VECTORS else None


def alignment(p: Parameter, value) -> int:
    """Return the alignment of an argument among the bytes of a launch."""
    known = element(p.type)
    if known is None or known[1] in (1, 3):
        return value.dtype.alignment
    return min(16, known[0].itemsize * known[1])


class Packed:
    """Arguments of one call. `bytes` is passed to the launch, and finish() copies written arrays back."""

    def __init__(self, signature: Signature, arguments: tuple, machine):
        if len(arguments) != len(signature.parameters):
            raise CallError(f"{signature.name}: {len(arguments)} arguments for {len(signature.parameters)} "
                            f"parameters",
                            expected=str(signature), got=", ".join(map(format_value, arguments)) or "nothing")
        self.machine = machine
        self.back: list[tuple[np.ndarray, np.ndarray, Any, bool]] = []
        self.bytes = b""
        for p, a in zip(signature.parameters, arguments):
            value = self._find_address(signature, p, a) if p.is_pointer else scalar(signature, p, a)
            self.bytes += bytes(-len(self.bytes) % alignment(p, value)) + value.tobytes()

    def _find_address(self, signature: Signature, p: Parameter, x):
        """Return the address of an array. NumPy arrays are copied to the device, and back unless const."""
        if x is None:
            return np.uint64(0)
        if isinstance(x, np.ndarray):
            _check_dtype(signature, p, x.dtype, x.size, x)
            writes = not p.text.lstrip().startswith("const ")
            if writes and not x.flags.writeable:
                raise DTypeError(f"{signature.name}: {p.name} is written by the kernel",
                                 got="a read-only one", expected=f"a writable array for `{p.text}`",
                                 fix=f"x.copy(), or `const {p.text}` in the kernel")
            return self._copy_to_device(x, writes)
        interface = getattr(x, "__cuda_array_interface__", None)
        if interface is not None:
            _check_dtype(signature, p, np.dtype(interface["typestr"]), int(np.prod(interface["shape"])), x)
            return np.uint64(interface["data"][0])
        if isinstance(x, (self.machine.driver.DeviceAllocation, self.machine.driver.PooledDeviceAllocation)):
            return np.uint64(int(x))
        raise DTypeError(f"{signature.name}: {p.name} must be an array",
                         expected=f"`{p.text}`: {_describe_type(p)}",
                         got=format_value(x), fix="np.array([...], dtype), or an array on the device")

    def _copy_to_device(self, x: np.ndarray, writes: bool):
        if x.size == 0:
            return np.uint64(0)
        host = np.ascontiguousarray(x)
        device = self.machine.driver.mem_alloc(host.nbytes)
        self.machine.driver.memcpy_htod(device, host)
        self.back.append((x, host, device, writes))
        return np.uint64(int(device))

    def finish(self) -> None:
        for x, host, device, writes in self.back:
            if writes:
                if host is not x and not host.flags.owndata:
                    host = host.copy()
                self.machine.driver.memcpy_dtoh(host, device)
                if host is not x:
                    x[...] = host.reshape(x.shape)

    def free(self) -> None:
        for *_, device, _ in self.back:
            device.free()
        self.back.clear()


def _describe_type(p: Parameter) -> str:
    known = element(p.type.rstrip("*"))
    return f"an array of {known[0].name}" if known else "an array"


def _check_dtype(signature: Signature, p: Parameter, dtype: np.dtype, size: int, x) -> None:
    known = element(p.type[:-1])
    if known is None:                                    # void*, float**, or a type that the source defines
        return
    wanted, width = known
    if dtype != wanted and not (dtype.kind == "c" and dtype.itemsize == wanted.itemsize * width):
        raise DTypeError(f"{signature.name}: {p.name} has the wrong dtype",
                         expected=f"`{p.text}`: {_describe_type(p)}",
                         got=format_value(x), fix=f"{p.name}.astype(np.{wanted.name})")
    if size * dtype.itemsize % (wanted.itemsize * width):
        raise DTypeError(f"{signature.name}: {p.name} ends in a part of a {p.type[:-1]}",
                         expected=f"`{p.text}`: a multiple of {width} numbers", got=f"{size} numbers")


def scalar(signature: Signature, p: Parameter, x):
    """Convert a number to the parameter's type.

    Raises DTypeError: a float would become an integer, or the number is out of range.
    """
    known = element(p.type)
    if known is None or known[1] > 1:
        if isinstance(x, (np.void, np.ndarray, np.generic)):
            return x
        if known is not None and isinstance(x, (tuple, list)) and len(x) == known[1]:
            fields = [(c, known[0]) for c in "xyzw"[:known[1]]]
            return np.array(tuple(x), np.dtype(fields, align=True))[()]
        raise DTypeError(f"{signature.name}: {p.name} is a {p.type}", expected=f"`{p.text}`: " + (
            f"{known[1]} numbers" if known else "a NumPy scalar of the same bytes"), got=format_value(x))
    dtype = known[0]
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    fits = {"f": (bool, int, float, np.floating, np.integer, np.bool_), "b": (bool, np.bool_)}.get(
        dtype.kind, (bool, int, np.integer, np.bool_))
    if not isinstance(x, fits):
        truncates = dtype.kind != "f" and isinstance(x, (float, np.floating))
        raise DTypeError(f"{signature.name}: {p.name} must be "
                         f"{'an integer' if dtype.kind in 'iu' else 'a number'}",
                         expected=f"`{p.text}`: a {dtype.name}", got=format_value(x),
                         fix=f"int({p.name})" if truncates else "a number here; arrays go to parameters "
                         "with a *")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= int(x) <= info.max:
            raise DTypeError(f"{signature.name}: {p.name} does not fit", got=str(x),
                             expected=f"`{p.text}`: {info.min} to {info.max}")
    return dtype.type(x)
