"""cuBLAS bindings through ctypes, used if cuBLAS is installed and selected (backends.py).

cuBLAS expects column-major matrices. A row-major product y = a b is the column-major product y' = b' a': the
operands are swapped, and a row-major operand is not transposed.
"""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, NamedTuple

from flowedu.cuda.machine import machine
from flowedu.cuda.view import View
from flowedu.errors import KernelError, UnsupportedError

NAMES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so")
LARGEST = 2 ** 31 - 1                                                # sizes are 32-bit integers
_TF32, _DEFAULT = 3, 0                                               # cublasMath_t
_lock = threading.Lock()
_library: Any = None
_handles: dict[int, ctypes.c_void_p] = {}                            # {GPU: cublasHandle_t}
chosen = "flowedu"                                                   # or "cublas"
tf32 = False                                                         # backends.cuda.matmul.allow_tf32


def library() -> Any:
    """Return cuBLAS, loaded on first use from FLOWEDU_CUBLAS or, by default, the system's libraries.

    Raises UnsupportedError: cuBLAS is not installed, or kernels run in the simulator, whose memory no GPU
    can access.
    """
    global _library
    with _lock:
        if _library is None:
            path = os.environ.get("FLOWEDU_CUBLAS")
            if machine().kind == "sim" and not path:
                raise UnsupportedError("cuBLAS: the simulator runs what is compiled from CUDA C, cuBLAS "
                                       "is not", expected="a GPU", got="FLOWEDU_CUDA=sim",
                                       fix='flow.backends.cuda.preferred_blas_library("default")')
            _library = _load((path,) if path else NAMES)
        return _library


def _load(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            candidate = ctypes.CDLL(name)
        except OSError:
            continue
        for f in ("cublasCreate_v2", "cublasSetStream_v2", "cublasSetMathMode", *_GEMM.values(),
                  *_STRIDED.values()):
            if not hasattr(candidate, f):
                raise UnsupportedError(f"cuBLAS: {name} is another library", expected=f"a function {f}",
                                       got="none")
        return candidate
    raise UnsupportedError("cuBLAS is not installed", expected=", ".join(names), got="none of them",
                           fix="install CUDA's toolkit or the wheel nvidia-cublas, or set FLOWEDU_CUBLAS to "
                           "its path")


_GEMM = {0: "cublasSgemm_v2", 1: "cublasDgemm_v2"}                   # by dtype code
_STRIDED = {0: "cublasSgemmStridedBatched", 1: "cublasDgemmStridedBatched"}
_NUMBER = {0: ctypes.c_float, 1: ctypes.c_double}


def layout(rows: int, cols: int, down: int, right: int) -> tuple[int, int] | None:
    """Return (1 if the matrix is column-major else 0, leading dimension), or None for other strides."""
    if (right == 1 or cols == 1) and (down >= cols or rows == 1):
        return 0, max(down if rows > 1 else 0, cols, 1)
    if (down == 1 or rows == 1) and (right >= rows or cols == 1):
        return 1, max(right if cols > 1 else 0, rows, 1)
    return None


class Product(NamedTuple):
    """Matrix product y = a b, for each of `batches`.

    a_flip and b_flip are 1 for column-major operands, a_step and b_step are leading dimensions, and
    a_between and b_between are the distances between the matrices of a batch.
    """
    a: int
    b: int
    y: int
    code: int
    rows: int
    depth: int
    cols: int
    a_flip: int
    a_step: int
    b_flip: int
    b_step: int
    batches: int = 1
    a_between: int = 0
    b_between: int = 0


def product(a: View, b: View, y: View, sizes: tuple[int, int, int], steps: tuple[int, int, int, int],
            batches: int, between: tuple[int, int]) -> Product | None:
    """Return the Product y = a b, or None if cuBLAS does not support the layout or the size.

    Args:
        sizes: rows, depth, columns.
        steps: strides of a's rows and columns, then of b's.
        between: distances between the matrices of a batch, of a and of b.
    """
    rows, depth, cols = sizes
    left, right = layout(rows, depth, *steps[:2]), layout(depth, cols, *steps[2:])
    if left is None or right is None or not depth or max(*sizes, left[1], right[1], batches) > LARGEST:
        return None
    return Product(a.pointer, b.pointer, y.pointer, y.dtype.code, *sizes, *left, *right, batches, *between)


def gemm(*arguments: Any) -> None:
    """Queue a Product, given as its fields and the stream. Raises KernelError: cuBLAS failed."""
    *fields, stream = arguments
    q = Product(*fields)
    one, zero = _NUMBER[q.code](1), _NUMBER[q.code](0)
    i, p = ctypes.c_int, ctypes.c_void_p
    handle, lib = _handle(), library()
    name = (_GEMM if q.batches == 1 else _STRIDED)[q.code]
    head = (handle, i(q.b_flip), i(q.a_flip), i(q.cols), i(q.rows), i(q.depth), ctypes.byref(one))
    with _lock:                                                      # the handle's stream and mode are shared
        _check_status("cublasSetStream_v2", lib.cublasSetStream_v2(handle,
                                                                   p(0 if stream is None
                                                                     else int(stream.handle))))
        _check_status("cublasSetMathMode", lib.cublasSetMathMode(handle, i(_TF32 if tf32 else _DEFAULT)))
        if q.batches == 1:
            status = getattr(lib, name)(*head, p(q.b), i(q.b_step), p(q.a), i(q.a_step), ctypes.byref(zero),
                                        p(q.y), i(q.cols))
        else:
            far = ctypes.c_longlong
            status = getattr(lib, name)(*head, p(q.b), i(q.b_step), far(q.b_between), p(q.a), i(q.a_step),
                                        far(q.a_between), ctypes.byref(zero), p(q.y), i(q.cols),
                                        far(q.rows * q.cols), i(q.batches))
    _check_status(name, status)


def _handle() -> ctypes.c_void_p:
    """Return the cuBLAS handle of this thread's device, created on first use."""
    lib, index = library(), machine().use()
    with _lock:
        if index not in _handles:
            handle = ctypes.c_void_p()
            _check_status("cublasCreate_v2", lib.cublasCreate_v2(ctypes.byref(handle)))
            _handles[index] = handle
        return _handles[index]


def _check_status(name: str, status: int) -> None:
    if status:
        raise KernelError(f"cuBLAS: {name} failed", expected="status 0", got=f"status {status}",
                          fix='flow.backends.cuda.preferred_blas_library("default") computes it with our '
                          'kernels')
