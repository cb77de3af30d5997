"""The kernels of the lessons, each a step on the way to one of the table, give what the last step gives."""
import numpy as np
import pytest
from on_device import Held, Room

from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import module


def run(file, name, arguments, grid, threads):
    module(f"lessons/{file}", "float", "double").function(name, arguments).prepared_async_call(grid, threads, None,
                                                                                             *arguments)
    machine().driver.Context.synchronize()


@pytest.mark.parametrize("step", ["naive", "shared"])
@pytest.mark.parametrize("rows, cols, depth", [(16, 16, 16), (17, 33, 5), (1, 40, 31), (64, 3, 100)])
def test_matrix_product(step, rows, cols, depth):
    rng = np.random.default_rng(rows)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((rows, depth), (depth, cols)))
    x, w, y = Held(a), Held(b), Room(Spec((rows, cols), float32))
    run(f"matmul_{step}.cu", f"matmul_{step}", (rows, cols, depth, x.view.pointer, w.view.pointer, y.view.pointer),
        (-(-cols // 16), -(-rows // 16)), (16, 16, 1))
    np.testing.assert_allclose(y.read(), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("step", ["shared", "shuffle"])
@pytest.mark.parametrize("n", [0, 1, 255, 256, 5000])
def test_sum(step, n):
    numbers = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    x, parts, y = Held(numbers), Room(Spec((4,), float32)), Room(Spec((1,), float32))
    run(f"reduce_{step}.cu", f"sum_{step}", (n, x.view.pointer, parts.view.pointer), (4, 1), (256, 1, 1))
    run(f"reduce_{step}.cu", f"sum_{step}", (4, parts.view.pointer, y.view.pointer), (1, 1), (256, 1, 1))
    np.testing.assert_allclose(y.read(), [numbers.sum(dtype=np.float64)], rtol=1e-4, atol=1e-4)
