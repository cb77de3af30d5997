"""What the exercises of chapter 8 must do."""
import numpy as np

from flowedu.learn.apart import Case, apart
from flowedu.learn.build import annotated, loops
from flowedu.learn.exercises import Wrong, expect
from flowedu.learn.launched import at_most, launched

SEEDS = range(1, 21)                                # orders of threads
SHAPES = [(1, 1), (3, 64), (2, 65), (5, 200)]       # (rows, columns)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def fresh(*shape):
    """Room for a result; a number that stays NaN was not written."""
    return np.full(shape, np.nan, np.float32)


def check_running_sums(f):
    source = f()
    tenths = np.full((2, 1_000_000), 0.1, np.float32)
    whole = [np.random.default_rng(0).integers(0, 10, s).astype(np.float32) for s in [*SHAPES, (0, 4), (4, 0), (7, 33)]]
    inputs = [*whole, tenths]
    cases = [Case([x], [x.shape], threads=t) for x in inputs for t in (1, 3)]
    for case, (got,) in zip(cases, apart(source, cases)):
        x, want = case.inputs[0], np.cumsum(case.inputs[0], axis=1, dtype=np.float64)
        hint = "a float has 24 bits: a sum of a million needs more" if x is tenths else "is every row begun with 0?"
        expect(f"running_sums of x {x.shape} on {case.threads} threads", got, want, hint)
    for line in loops(annotated(source)):
        if line.score:
            raise Wrong(f"right, but line {line.number} talks to Python (score {line.score}):\n  {line.text.strip()}\n"
                        "  hint: say what every name in it is, with cdef")


def check_guard(f):
    source = f()
    for n in (64, 1, 63, 65, 1000):
        x, y, out = numbers(n), numbers(n, seed=1), fresh(n)
        launched(source, "add", -(-n // 64), 64, x, y, out, n, seeds=(0, 1))
        expect(f"add of {n} elements", out, x + y, "blockIdx.x * blockDim.x + threadIdx.x is the number of a thread")


def check_row_sums(f):
    source = f()
    for rows, n in SHAPES:
        x, out = numbers(rows, n), fresh(rows)
        launched(source, "row_sums", rows, 64, x, out, n, seeds=SEEDS)
        expect(f"row_sums of ({rows}, {n})", out, x.sum(1, dtype=np.float64).astype(np.float32),
               "each thread sums some columns, then the block joins 64 sums")
    rows, n = 4, 1024
    counts = launched(source, "row_sums", rows, 64, numbers(rows, n), fresh(rows), n)
    at_most(counts, "global_bytes", 4 * (rows * n + rows), "bytes of memory", "each element once, each sum once")
    at_most(counts, "global_loads", rows * n / 32, "loads of warps", "32 threads that read together "
            "count as one: share the row")
    at_most(counts, "sectors", rows * n / 8 + 2 * rows, "sectors", "thread 0 reads element 0, "
            "thread 1 element 1; then 64 further on")
    at_most(counts, "barriers", 8 * rows, "barriers", "halving 64 sums takes 6; warps of 32 can do with shuffles")


def check_softmax_rows(f):
    source = f()
    for rows, n in SHAPES:
        x, y = numbers(rows, n), fresh(rows, n)
        if n == 200:
            x += np.arange(1000, 0, -5, dtype=np.float32)
        launched(source, "softmax_rows", rows, 64, x, y, n, seeds=SEEDS)
        e = np.exp(x - x.max(1, keepdims=True))
        expect(f"softmax_rows of ({rows}, {n})" + (", numbers to 1000" if n == 200 else ""), y, e / e.sum(1, keepdims=True),
               "subtract the largest of the whole row, which both warps have to know")
    rows, n = 4, 256
    counts = launched(source, "softmax_rows", rows, 64, numbers(rows, n), fresh(rows, n), n)
    at_most(counts, "global_bytes", 4 * 4 * rows * n, "bytes of memory",
            "read for the largest, for the sum, for the result; write once")


def check_transpose(f):
    source = f()
    for rows, cols in ((32, 32), (33, 70), (1, 40), (40, 1)):
        x, y = numbers(rows, cols), fresh(cols, rows)
        launched(source, "transpose", (-(-cols // 32), -(-rows // 32)), (32, 32), x, y, rows, cols, seeds=(0, 1, 2, 3, 4))
        expect(f"transpose of ({rows}, {cols})", y, np.ascontiguousarray(x.T), "y has rows columns: y[c * rows + r]")
    counts = launched(source, "transpose", (2, 3), (32, 32), numbers(96, 64), fresh(64, 96), 96, 64, seeds=SEEDS)
    at_most(counts, "global_bytes", 8 * 96 * 64, "bytes of memory", "each element is read once and written once")
    at_most(counts, "sectors", 2 * 96 * 64 / 8, "sectors", "threads of one warp must read neighbours and write "
            "neighbours: turn the tile in shared memory")
    at_most(counts, "conflicts", 0, "further turns for banks", "the elements of a column lie in one bank: give a row 33")


def check_tiled_product(f):
    source = f()
    for m, n, k in ((16, 16, 16), (17, 33, 5), (1, 40, 31), (40, 3, 50)):
        a, b, c = numbers(m, k), numbers(k, n, seed=1), fresh(m, n)
        launched(source, "product", (-(-n // 16), -(-m // 16)), (16, 16), a, b, c, m, n, k, seeds=(0, 1, 2, 3, 4))
        if not np.allclose(c, a @ b, rtol=1e-4, atol=1e-4):
            expect(f"product of ({m}, {k}) and ({k}, {n})", c, a @ b, "outside of a and b a tile must hold zeros")
    n = 48
    counts = launched(source, "product", (3, 3), (16, 16), numbers(n, n), numbers(n, n, seed=1), fresh(n, n), n, n, n,
                      seeds=SEEDS)
    at_most(counts, "global_bytes", 4 * (2 * n ** 3 / 16 + n * n), "bytes of memory",
            "a block needs 16 rows of a and 16 columns of b: load a tile of each once, for all its threads")
