"""Array bounds in a plan's arena are exact: a kernel of a step that accesses a byte outside its arrays is
reported.
"""
import numpy as np
import pytest
from cuda_common import in_simulator
from test_plans import executor

import flowedu as flow
from flowedu.cuda.launch import Queued
from graph.making import make_graph

pytestmark = in_simulator

KERNELS = """
__global__ void put(char* y, long long at) { y[at] = 1; }
__global__ void get(const char* y, char* z, long long at) { z[0] = y[at]; }
"""


def program(self, x, w):
    """Compute with sizes that are and are not multiples of the arena's rounding, with views, sums, and values
    with late uses.
    """
    a = x @ w
    b = flow.relu(a)[:, :5] * 2
    c = flow.softmax(a + 1, 1)
    return (b.sum(1, keepdim=True) + c).exp(), a.sum()


def several_views(self, x, w):
    """Return views that one step each packs after the steps of the graph."""
    a = x @ w
    return a.t(), a.exp().t(), (a + 1)[:, 1:], x.sum(0)


class Bytes:
    def __init__(self, address, n):
        self.__cuda_array_interface__ = {"typestr": "|i1", "shape": (n,), "version": 3,
                                         "data": (address, False)}


@pytest.fixture(scope="module")
def kernels():
    return flow.cuda.kernel(KERNELS)


@pytest.mark.parametrize("program", [program, several_views])
@pytest.mark.parametrize("shape", [(16, 16), (3, 7), (1, 32), (5, 13)])
def test_array_bounds_are_exact_in_every_step(shape, program, kernels):
    """After a step's own launches, launch one more kernel that accesses one byte of one of its arrays."""
    x, w = flow.randn(*shape).cuda(), flow.randn(shape[1], shape[1]).cuda()
    g = make_graph(program)
    want = [y.cpu() for y in g(x, w)]
    run, z = executor(g), np.zeros(1, np.int8)
    tried, run.parts = 0, [*range(len(run.steps))]       # step by step, without a CUDA graph
    for i, step in enumerate(run.steps):
        own = run.queues[i]
        for p, v in zip(step.places, run.views[i], strict=True):
            first, n = v.pointer - p.offset * p.spec.dtype.bytes, p.buffer.nbytes
            y = Bytes(first, n)
            for at, beyond in ((0, False), (n - 1, False), (-1, True), (n, True), (n + 3, True)):
                def more(handle, y=y, at=at):
                    kernels("get", 1, 1)(y, z, at)
                run.queues[i] = [*own, Queued(None, more, ())]
                if beyond:
                    with pytest.raises(flow.cuda.CudaFault) as e:
                        run.run((x, w))
                    assert (e.value.kind, e.value.parameter) == ("outside", "y"), e.value
                    assert f"y has {n} byte" in str(e.value), e.value
                    tried += 1
                else:
                    run.run((x, w))
        run.queues[i] = own
    assert len(run.steps) >= 4 and tried == 3 * sum(len(step.places) for step in run.steps)
    run.parts = None
    for _ in range(3):                                   # and as a CUDA graph
        for y, expected in zip(g(x, w), want, strict=True):
            np.testing.assert_allclose(y.cpu().numpy(), expected.numpy(), rtol=1e-5)
