"""Long runs of jobs leak neither memory nor open files nor threads."""
import ctypes
import gc
import itertools
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, job  # noqa: F401

pytestmark = [pytest.mark.slow,             # the sanitizer build keeps freed memory for a while
              pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")]
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
OBJECT = 16             # bytes, at least, of a Python object


class Mallinfo(ctypes.Structure):
    """Result struct of glibc's mallinfo2."""

    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                "fordblks keepcost"
                .split()]


try:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
except AttributeError:              # another libc, or an old glibc
    mallinfo = Mallinfo


def memory():
    """Return (resident bytes, bytes handed out by malloc, bytes of Python's small objects). Memory freed by
    earlier tests can hide a leak from the first measure, but not from the other two.
    """
    gc.collect()
    m = mallinfo()
    return np.array([int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE,
                     m.uordblks + m.hblkhd, sys.getallocatedblocks() * OBJECT])


def used():
    """Return (open file descriptors, Python threads, threads of the process)."""
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))


def growth(call, times, warm_up) -> np.ndarray:
    """Return the least growth, over ten stretches of `times / 10` calls, of each number that `memory`
    returns.

    An object that every call keeps adds to the same number in every stretch. Allocators round and reuse, so a
    number that grows in nine stretches of ten is no leak. Open files and threads may not grow at all.
    """
    for i in range(warm_up):
        call(i)
    before, stretches = used(), []
    for _ in range(10):
        start = memory()
        for i in range(times // 10):
            call(i)
        stretches.append(memory() - start)
    assert all(now <= then for now, then in zip(used(), before)), "files or threads grew"
    return np.min(stretches, axis=0)


def leaks(call, times, warm_up) -> bool:
    """True if most calls of `call(i)` keep an object or the memory of one. 4,096 bytes are one page."""
    least = growth(call, times, warm_up)
    print("least growth in bytes:", dict(zip(("resident", "malloc", "objects"), least.tolist())))
    return least.max() > 4096 + times // 10 * OBJECT * 0.7


def train_job(watch=None):
    """Build a small net with dropout, momentum, and a schedule, optionally watched."""
    def body(a, labels):
        h = flow.layers.dense(a, 16, flow.nn.relu, kernel_initializer=flow.random_normal_initializer(),
                              name="h")
        h = flow.nn.dropout(h, 0.3)
        logits = flow.layers.dense(h, 4, kernel_initializer=flow.random_normal_initializer(stddev=0.1),
                                   name="o")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(flow.optimizer.CosineScheduler(0.1, 100)).minimize(loss)
        if watch:
            flow.watch(logits, watch)
            flow.watch_diff(h, watch)
        return loss

    return job(body, f32(32, 16), np.zeros(32, np.int32), type="train")


def draws():
    rng = np.random.default_rng(0)
    return lambda: (rng.standard_normal((32, 16)).astype(np.float32), rng.integers(0, 4, 32).astype(np.int32))


@pytest.mark.parametrize("leak", [lambda: bytearray(os.urandom(100)), lambda: np.empty(100, np.uint8), object,
                                  lambda: ctypes.CDLL(None).malloc(100)],
                         ids=["bytes", "array", "object", "malloc"])
def test_the_measurement_detects_a_leak(leak):
    kept = []
    assert leaks(lambda i: kept.append(leak()), 10_000, 2000)


def test_ten_thousand_runs_leak_nothing():
    step, draw = train_job(), draws()
    assert not leaks(lambda i: step(*draw()), 10_000, 2000)


def test_ten_thousand_watched_runs_leak_nothing():
    last = []

    def keep(t):
        last[:] = [t]

    step, draw = train_job(keep), draws()
    assert not leaks(lambda i: step(*draw()), 10_000, 2000)
    assert last


def test_predictions_in_containers_and_futures_leak_nothing():
    x = f32(8, 3)
    pair = job(lambda a: (a + 1, a * 2), x, returns=tuple[tp.Numpy, tp.Numpy], name="pair")
    called = job(lambda a: a + 1, x, returns=tp.Callback[tp.Numpy], name="called")
    sink = []

    def call(i):
        sink[:] = pair(x)
        called(x)(sink.append)

    assert not leaks(call, 9000, 2000)


def test_refused_calls_leak_nothing():
    """An error holds frames and arguments, which must be released with it."""
    same = job(lambda a: a + 1, f32(64, 64))
    bad = f32(64, 63)

    def call(i):
        with pytest.raises(AssertionError):
            same(bad)

    same(f32(64, 64))
    assert not leaks(call, 1200, 200)


def test_two_hundred_checkpoints_leak_nothing(tmp_path):
    def body(a):
        loss = flow.layers.dense(a, 2, use_bias=False, name="d")
        flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(loss)
        return loss

    step, names = job(body, f32(4, 3), type="train"), itertools.count()

    def call(i):
        step(f32(4, 3))
        path = tmp_path / str(next(names))
        flow.checkpoint.save(path)
        flow.load_variables(flow.checkpoint.get(path))

    assert not leaks(call, 180, 20)
    assert len(os.listdir(tmp_path)) == 200


def test_cleared_sessions_leak_nothing():
    """A cleared session keeps no memory; notebooks and tests create hundreds of sessions."""
    draw = draws()

    def call(i):
        flow.clear_default_session()
        train_job()(*draw())

    # Bounded caches fill during the first calls: memory blocks, kernel choices, and allocators.
    assert not leaks(call, 90, 250)


def test_eager_steps_leak_nothing():
    rng = np.random.default_rng(0)

    def call(i):
        w = flow.tensor(rng.standard_normal((8, 8)).astype(np.float32), requires_grad=True)
        flow.math.reduce_sum(flow.matmul(w, w)).backward()

    assert not leaks(call, 3000, 500)
