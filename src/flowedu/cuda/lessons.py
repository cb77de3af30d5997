"""Ladders of chapter 8: kernels for the same result (_kernels/cuda/lessons), each with less work than before.

    ladder = LADDERS["product"]
    a, b = ladder.inputs()                   # of the ladder's size; inputs(17, 33, 5): of another size
    ladder["shared"](a, b)                   # NumPy in, NumPy out
    print(table(ladder.counts()))            # memory accesses of each step (in the simulator)
"""
from __future__ import annotations

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flowedu.cuda.kernels import Kernels, kernel
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import for_type
from flowedu.cuda.profiling import profile


class Step:
    """Step of a ladder: a file, and a function that launches its kernels. Call it with float32 arrays."""

    def __init__(self, name: str, file: str, why: str, launch: Callable):
        self.name, self.file = name, f"lessons/{file}.cu"
        self.why, self._launch = why, launch

    @functools.cached_property
    def kernels(self) -> Kernels:
        return kernel(for_type(self.file, "float", "double"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the result, computed on the device. Raises CudaFault: the simulator detected a fault."""
        memory = _Memory()
        try:
            shape, y = self._launch(functools.partial(self._start, memory), memory, *arrays)
            return memory.read(y, shape)
        finally:
            memory.free()

    def _start(self, memory: _Memory, name: str, grid, block, *arguments) -> None:
        def convert(argument):
            if isinstance(argument, int):
                return np.int64(argument)
            return memory.copy(argument) if isinstance(argument, np.ndarray) else argument

        self.kernels(name, grid, block)(*(convert(a) for a in arguments))


class _Memory:
    """Device memory of one call: copies of NumPy arrays, and uninitialized buffers."""

    def __init__(self):
        self.driver, self._copies, self._buffers = machine().driver, {}, []

    def allocate(self, *shape: int):
        self._buffers.append(self.driver.mem_alloc(max(4 * int(np.prod(shape)), 4)))
        return self._buffers[-1]

    def copy(self, a: np.ndarray):
        if id(a) not in self._copies:
            self._copies[id(a)] = self.allocate(*a.shape)
            if a.size:
                self.driver.memcpy_htod(self._copies[id(a)], np.ascontiguousarray(a, a.dtype))
        return self._copies[id(a)]

    def read(self, buffer, shape: tuple[int, ...]) -> np.ndarray:
        y = np.empty(shape, np.float32)
        if y.size:
            self.driver.memcpy_dtoh(y, buffer)
        return y

    def free(self) -> None:
        for buffer in self._buffers:
            buffer.free()


@dataclass(frozen=True)
class Ladder:
    """Steps to the same result. `make(random, *size)` makes arrays; `answer(*arrays)` is NumPy's result."""
    name: str
    size: tuple[int, ...]
    make: Callable
    answer: Callable
    steps: tuple[Step, ...]

    def __getitem__(self, step: str) -> Step:
        return {s.name: s for s in self.steps}[step]

    def inputs(self, *size: int) -> list[np.ndarray]:
        return [a.astype(np.float32) for a in self.make(np.random.default_rng(0).standard_normal,
                                                        *(size or self.size))]

    def counts(self, *size: int) -> dict[str, dict[str, int]]:
        """Return the counters of each step, summed over its kernels. Raises UnsupportedError: on a GPU."""
        arrays, counters = self.inputs(*size), {}
        for step in self.steps:
            with profile(io.StringIO()) as p:
                step(*arrays)
            counters[step.name] = {k: sum(c[k] for c in p.kernels.values())
                                   for k in next(iter(p.kernels.values()))}
        return counters


COLUMNS = ("step", "launches", "bytes", "accesses", "sectors each", "shared", "conflicts", "barriers")


def row(c: dict[str, int]) -> tuple:
    """Return the columns of the table.

    bytes: bytes of main memory that threads read and write. accesses: accesses of warps to main memory.
    shared: accesses of warps to shared memory.
    """
    accesses = c["global_loads"] + c["global_stores"]
    return (c["launches"], c["global_bytes"], accesses, f"{c['sectors'] / accesses:.1f}",
            c["shared_loads"] + c["shared_stores"], c["conflicts"], c["barriers"])


def table(counts: dict[str, dict[str, int]]) -> str:
    """Return a table with a line for each step."""
    rows = [COLUMNS, *((name, *row(c)) for name, c in counts.items())]
    return "\n".join(f"{r[0]:10}" + "".join(f"{x:>{w},}" if isinstance(x, int) else f"{x:>{w}}"
                                            for x, w in zip(r[1:], (9, 12, 10, 14, 10, 11, 10)))
                     for r in rows)


# ---- launches: functions of (start, memory, *arrays) that return (shape, buffer of the result)
def _up(n: int, by: int) -> int:
    return max(1, -(-n // by))


def _product(name: str, side: int, block) -> Callable:
    def launch(start, memory, a, b):
        (rows, depth), cols = a.shape, b.shape[1]
        y = memory.allocate(rows, cols)
        start(name, (_up(cols, side), _up(rows, side)), block, rows, cols, depth, a, b, y)
        return (rows, cols), y
    return launch


BLOCKS = 16  # few, so that each block loops many times


def _two_sums(name: str) -> Callable:
    def launch(start, memory, x):
        parts, y = memory.allocate(BLOCKS), memory.allocate(1)
        start(name, BLOCKS, 256, x.size, x, parts)
        start(name, 1, 256, BLOCKS, parts, y)
        return (), y
    return launch


def _one_sum(start, memory, x):
    parts, y = memory.allocate(BLOCKS), memory.allocate(1)
    start("sum_one_pass", BLOCKS, 256, x.size, x, parts, memory.copy(np.zeros(1, np.uint32)), y)
    return (), y


def _rows(name: str, warps: int, rows_of_block: int) -> Callable:
    def launch(start, memory, x):
        y = memory.allocate(*x.shape)
        start(name, min(_up(x.shape[0], rows_of_block), BLOCKS // 2), 32 * warps, *x.shape, x, y)
        return x.shape, y
    return launch


def _transposition(name: str) -> Callable:
    def launch(start, memory, x):
        rows, cols = x.shape
        y = memory.allocate(cols, rows)
        start(name, (_up(cols, 32), _up(rows, 32)), (32, 32), rows, cols, x, y)
        return (cols, rows), y
    return launch


def _convolution(name: str) -> Callable:
    def launch(start, memory, x, w):
        n, c, height, width = x.shape
        o, _, kh, kw = w.shape
        shape = n, o, height - kh + 1, width - kw + 1
        pixels = n * shape[2] * shape[3]
        y = memory.allocate(*shape)
        grid, block = ((_up(pixels * o, 256), 256) if name == "conv_direct" else
                       ((_up(pixels, 16), _up(o, 16)), (16, 16)))
        start(name, grid, block, n, c, height, width, o, kh, kw, x, w, y)
        return shape, y
    return launch


def _attention_scores(start, memory, q, k, v):
    (queries, width), keys = q.shape, len(k)
    scores, y = memory.allocate(queries, keys), memory.allocate(queries, width)
    start("attention_scores", (_up(keys, 16), _up(queries, 16)), (16, 16), queries, keys, width, q, k, scores)
    start("attention_softmax", queries, 256, queries, keys, scores)
    start("attention_values", (_up(width, 16), _up(queries, 16)), (16, 16), queries, keys, width,
          scores, v, y)
    return q.shape, y


def _attention_online(start, memory, q, k, v):
    y = memory.allocate(*q.shape)
    start("attention_online", _up(len(q), 32), 256, len(q), len(k), q.shape[1], q, k, v, y)
    return q.shape, y


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _windows(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("ncpqij,ocij->nopq", windows, w)


LADDERS = {ladder.name: ladder for ladder in (
    Ladder("product", (128, 128, 128), lambda r, rows, cols, depth: (r((rows, depth)), r((depth, cols))),
           lambda a, b: a @ b, (
        Step("naive", "matmul_naive", "a thread for each result", _product("matmul_naive", 16, (16, 16))),
        Step("shared", "matmul_shared", "a block shares what it loads",
             _product("matmul_shared", 16, (16, 16))),
        Step("registers", "matmul_registers", "8 x 8 results to a thread",
             _product("matmul_registers", 128, 256)),
        Step("vectors", "matmul_vectors", "four numbers at a time", _product("matmul_vectors", 128, 256)),
        Step("double", "matmul_double", "two pairs of tiles", _product("matmul_double", 128, 256)),
        Step("async", "matmul_async", "copies without registers", _product("matmul_async", 128, 256)))),
    Ladder("sum", (65536,), lambda r, n: (r(n),), np.sum, (
        Step("shared", "reduce_shared", "halves onto halves", _two_sums("sum_shared")),
        Step("shuffle", "reduce_shuffle", "lanes hand over", _two_sums("sum_shuffle")),
        Step("one pass", "reduce_one_pass", "the last block finishes", _one_sum))),
    Ladder("softmax", (16, 1000), lambda r, rows, n: (4 * r((rows, n)),), _softmax, (
        Step("three", "softmax_three", "maximum, sum, results", _rows("softmax_three", 8, 1)),
        Step("online", "softmax_online", "maximum and sum at once", _rows("softmax_online", 8, 1)),
        Step("warp", "softmax_warp", "a row in registers", _rows("softmax_warp", 4, 4)))),
    Ladder("transpose", (128, 128), lambda r, rows, cols: (r((rows, cols)),), np.transpose, (
        Step("naive", "transpose_naive", "a thread for each element", _transposition("transpose_naive")),
        Step("tile", "transpose_tile", "it turns in shared memory", _transposition("transpose_tile")),
        Step("padded", "transpose_padded", "rows of 33", _transposition("transpose_padded")))),
    Ladder("convolution", (2, 8, 20, 20, 16, 5, 5),
           lambda r, n, c, h, w, o, kh, kw: (r((n, c, h, w)), r((o, c, kh, kw))), _windows, (
        Step("direct", "conv_direct", "a thread for each result", _convolution("conv_direct")),
        Step("gemm", "conv_gemm", "a product of matrices", _convolution("conv_gemm")))),
    Ladder("attention", (128, 128, 64), lambda r, queries, keys, width: (r((queries, width)),
                                                                         r((keys, width)), r((keys, width))),
           lambda q, k, v: _softmax(q @ k.T / q.shape[1] ** 0.5) @ v, (
        Step("scores", "attention_scores", "all scores in memory", _attention_scores),
        Step("online", "attention_online", "scores of a tile", _attention_online))))}
