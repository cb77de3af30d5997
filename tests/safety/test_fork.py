"""Law: a forked process computes the same results as its parent, although it inherits no threads."""
import os
import sys

import pytest

from .children import run_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

CODE = """
import os, sys, time, warnings
import numpy as np
import flowedu as flow
from flowedu.distributed import set_virtual_devices
flow.set_num_threads(4)
F = flow.nn.functional

class Net(flow.nn.Graph):
    def build(self, x):
        return flow.matmul(x, x).exp().sum()

x, picture, net = flow.randn(600, 600) / 100, flow.randn(4, 16, 40, 40), Net()
set_virtual_devices(3)
on_ranks, rows = Net(), flow.ones(6, 6, placement=flow.placement("cpu", [0, 1, 2]), sbp=flow.sbp.split(0))
weight = flow.randn(16, 16, 3, 3, requires_grad=True)

def work():
    big = flow.ones(2_000_000)
    loss = F.conv2d(picture, weight, padding=1).sum()
    loss.backward()
    return [float(big.exp().sum()), float((x @ x).sum()), float(net(x)), float(on_ranks(rows).numpy()),
            float(loss), float(flow.sort(big)[0][0])]

want = work()

def child():
    np.testing.assert_allclose(work(), want, rtol=1e-3)
    assert flow.get_num_threads() == 1
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in (4, 3, 1):
            flow.set_num_threads(n)
    assert flow.get_num_threads() == 1 and [w.category for w in seen] == [RuntimeWarning], seen
    assert "spawn" in str(seen[0].message)
    work()

def forked(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
            os._exit(0)
        except BaseException as e:
            print(repr(e), flush=True)
            os._exit(1)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

def grandchild():
    assert forked(child) == 0

for f in (child, grandchild):
    status = forked(f)
    assert status == 0, (f.__name__, status)
np.testing.assert_allclose(work(), want, rtol=1e-3)
assert flow.get_num_threads() == 4
print("all")
"""


def test_a_forked_process_computes_the_same_results():
    assert run_child(CODE, 200).endswith("all\n")


@pytest.mark.skipif(sys.platform != "linux", reason="multiprocessing forks on Linux")
def test_a_forked_pool_computes():
    assert run_child("""
import multiprocessing as mp
import flowedu as flow
def f(n):
    return float((flow.ones(2_000_000) * n).sum())
if __name__ == "__main__":
    flow.set_num_threads(2)
    f(1)
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map_async(f, [1, 2, 3]).get(60) == [2e6, 4e6, 6e6]
    print("all")
""", 100).endswith("all\n")
