"""What the exercises of chapter 1 must do."""
import numpy as np

import flowedu as flow
from flowedu.core.values.storage import view
from flowedu.learn.exercises import Wrong, expect


def check_spec_bytes(f):
    expect("spec_bytes((100, 784), 4)", f((100, 784), 4), 313600, "multiply the sizes, then the bytes of one element")
    expect("spec_bytes((3, 0), 8)", f((3, 0), 8), 0, "an axis of size 0 leaves no elements")
    expect("spec_bytes((), 8)", f((), 8), 8, "no axes: that is one element, not none")


def check_strides_of(f):
    expect("strides_of((3, 4))", f((3, 4)), (4, 1), "one row down skips a whole row of 4")
    expect("strides_of((2, 3, 4))", f((2, 3, 4)), (12, 4, 1), "each axis steps over all axes to its right")
    expect("strides_of(())", f(()), (), "no axes, no strides")
    rng = np.random.default_rng(0)
    for _ in range(20):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        expect(f"strides_of({shape})", f(shape), flow.empty(*shape).strides, "compare with flow.empty(*shape).strides")


def check_cell(f):
    expect("cell((1, 2), (4, 1), 0)", f((1, 2), (4, 1), 0), 6, "one row of 4, then 2 more")
    expect("cell((1, 2), (4, 1), 100)", f((1, 2), (4, 1), 100), 106, "element [0, 0] lies at the offset")
    expect("cell((3, 7), (0, 2), 5)", f((3, 7), (0, 2), 5), 19, "a stride of 0 stays in place: that is broadcasting")
    expect("cell((), (), 9)", f((), (), 9), 9, "a single number lies at the offset")


def check_transposed(f):
    expect("transposed((3, 4), (4, 1), (1, 0))", f((3, 4), (4, 1), (1, 0)), ((4, 3), (1, 4)),
           "shape and strides move together")
    t = flow.empty(2, 3, 4)
    for perm in ((2, 0, 1), (1, 2, 0), (0, 2, 1)):
        want = t.permute(*perm)
        expect(f"transposed((2, 3, 4), (12, 4, 1), {perm})", f(t.shape, t.strides, perm), (want.shape, want.strides),
               "new axis i is old axis perm[i], not the other way round")


def check_flipped(f):
    expect("flipped((5,), (1,), 0, 0)", f((5,), (1,), 0, 0), ((-1,), 4), "start at the last element and step back")
    expect("flipped((3, 4), (4, 1), 10, 0)", f((3, 4), (4, 1), 10, 0), ((-4, 1), 18),
           "the last row begins (3 - 1) * 4 cells after the offset")


def check_windows(f):
    numbers = np.arange(40, dtype=np.float32)
    block = flow.from_numpy(numbers)
    for n, stride, offset, width, step in ((5, 1, 0, 3, 1), (8, 1, 2, 3, 2), (10, 3, 1, 4, 3), (3, 1, 0, 3, 1),
                                           (6, 2, 4, 1, 1), (2, 1, 0, 3, 1)):
        signal = numbers[offset:offset + stride * n:stride][:n]
        want = np.array([signal[i:i + width] for i in range(0, n - width + 1, step)]).reshape(-1, width)
        call = f"windows(n={n}, stride={stride}, offset={offset}, width={width}, step={step})"
        got = f(n, stride, offset, width, step)
        if not (isinstance(got, tuple) and len(got) == 3):
            raise Wrong(f"{call}\n  gives {got!r}\n  hint: return (shape, strides, offset)")
        expect(f"{call}: shape", got[0], want.shape, "how many starting points i leave room for i + width <= n?")
        last = got[2] + sum((size - 1) * s for size, s in zip(*got[:2])) if want.size else 0
        if not 0 <= last < len(numbers):
            raise Wrong(f"{call}\n  strides {got[1]} lead to cell {last}, outside the block\n  hint: one window "
                        "further is step elements, and an element is `stride` cells")
        expect(f"{call}: the view", view(block, *got, flow.Tensor).numpy(), want,
               "one window further: step elements; one element further: stride cells")
