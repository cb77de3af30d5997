"""flow.data.Prefetcher: the consumer gets the same items as without it, and no thread is left running."""
import gc
import subprocess
import sys
import threading
import traceback
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import HANGS, few, refused
from flowedu.data import Prefetcher
from flowedu.errors import ArgumentError, CheckError, DataError

WAIT = float(HANGS)     # seconds; reached only when a test fails


def threads():
    return [t for t in threading.enumerate() if t.name == "flowedu-prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    for t in threads():
        t.join(WAIT)
    assert not threads()


class script:
    """A `produce` callable that returns numbers, raises exceptions, and ends as a list prescribes."""

    def __init__(self, steps):
        self.steps = iter(steps)

    def __call__(self):
        step = next(self.steps)                 # StopIteration at the end
        if isinstance(step, Exception):
            raise step
        return step


def collect_results(get, times):
    """Return the results of `times` calls: items, and exceptions by type and text."""
    found = []
    for _ in range(times):
        try:
            found.append(get())
        except Exception as e:
            found.append((type(e), str(e)))
    return found


steps = st.lists(st.one_of(st.integers(), st.none(), st.text(max_size=3).map(ValueError)), max_size=12)


@settings(deadline=None, max_examples=60)
@given(steps, st.integers(1, 5), st.integers(0, 15))
def test_items_are_the_same_with_and_without_prefetching(steps, depth, times):
    with Prefetcher(script(steps), depth) as p:
        assert collect_results(p.get, times) == collect_results(script(steps), times)


def test_prefetcher_is_an_iterator():
    assert list(Prefetcher(iter(range(100)).__next__)) == list(range(100))


def test_an_exhausted_prefetcher_stays_exhausted():
    p = Prefetcher(script([1]))
    assert p.get() == 1
    for _ in range(3):
        with pytest.raises(StopIteration):
            p.get()
    p._row.thread.join(WAIT)
    assert not threads()


def test_an_exception_has_the_thread_traceback_and_production_continues():
    def a_telling_name():
        raise DataError("broken", expected="a", got="b", fix="c")

    with Prefetcher(a_telling_name) as p:
        for _ in range(2):
            with pytest.raises(DataError) as e:
                p.get()
            names = [f.name for f in traceback.extract_tb(e.tb)]
            assert "a_telling_name" in names and names.count("run") == 1


def test_a_base_exception_ends_production():
    def stop():
        raise SystemExit(3)

    p = Prefetcher(stop)
    for _ in range(2):
        with pytest.raises(SystemExit):
            p.get()
    p._row.thread.join(WAIT)
    assert not p._row.thread.is_alive()


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_it_runs_at_most_depth_items_ahead(depth):
    made, progress = [], threading.Condition()

    def produce():
        with progress:
            made.append(len(made))
            progress.notify()
        return made[-1]

    with Prefetcher(produce, depth) as p:
        for taken in range(4):
            with progress:      # depth items are queued, and one more is waiting to be queued
                assert progress.wait_for(lambda taken=taken: len(made) == taken + depth + 1, WAIT)
            p._row.thread.join(0.02)
            assert len(made) == taken + depth + 1
            assert p.get() == taken


def test_the_producer_runs_concurrently_with_the_consumer():
    started, go_on = threading.Event(), threading.Event()
    items = iter(range(3))

    def produce():
        item = next(items)
        if item == 1:
            started.set()
            assert go_on.wait(WAIT)
        return item

    with Prefetcher(produce) as p:
        assert p.get() == 0
        assert started.wait(WAIT)           # the next item is in progress before it is requested
        go_on.set()
        assert [p.get(), p.get()] == [1, 2]


# ---- closing
# -------------------------------------------------------------------------------------------------------

def test_close_while_the_queue_is_full():
    p = Prefetcher(lambda: 1, 1)
    assert p.get() == 1
    assert p.close() and p.close() and not threads()
    with refused(CheckError, "after close"):
        p.get()


def test_close_while_produce_is_blocked():
    entered, leave = threading.Event(), threading.Event()

    def produce():
        entered.set()
        leave.wait(WAIT)

    p = Prefetcher(produce)
    assert entered.wait(WAIT)
    assert not p.close(timeout=0.01)        # it returns at once; the thread ends when produce returns
    leave.set()
    p._row.thread.join(WAIT)
    assert not p._row.thread.is_alive()


def test_close_wakes_a_consumer_that_waits():
    entered, leave, found = threading.Event(), threading.Event(), []

    def produce():
        entered.set()
        leave.wait(WAIT)

    p = Prefetcher(produce)
    consumer = threading.Thread(target=lambda: found.extend(collect_results(p.get, 1)))
    consumer.start()
    assert entered.wait(WAIT)
    p.close(timeout=0)
    consumer.join(WAIT)
    leave.set()
    assert not consumer.is_alive() and found[0][0] is CheckError


def test_losing_the_last_reference_ends_the_thread():
    p = Prefetcher(lambda: 1)
    thread, gone = p._row.thread, weakref.ref(p)
    p.get()
    del p
    gc.collect()
    assert gone() is None
    thread.join(WAIT)
    assert not thread.is_alive()


def test_losing_the_last_reference_inside_produce():
    holder, last = [], threading.Event()

    def produce():
        assert last.wait(WAIT)
        holder.clear()
        gc.collect()

    ready = Prefetcher(produce)
    thread = ready._row.thread
    holder.append(ready)
    del ready
    last.set()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_close_releases_the_items():
    class Item:
        pass

    made = []

    def produce():
        item = Item()
        made.append(weakref.ref(item))
        return item

    p = Prefetcher(produce, 3)
    p.get()
    p.close()
    gc.collect()
    assert [r for r in made if r() is not None] == []


@pytest.mark.parametrize("body", few([
    "p = Prefetcher(lambda: 1); p.get()",  # waiting on a full queue
    "e = threading.Event(); p = Prefetcher(lambda: (e.set(), time.sleep(0.05))); e.wait()",
    "p = Prefetcher(lambda: 1); p.get(); sys.exit(0)",
    "p = Prefetcher(iter([1]).__next__); p.get()",
    "p = Prefetcher(lambda: threading.Event().wait(1e5))"],  # never returns: a daemon thread
    lambda body: "time.sleep" in body or "1e5" in body))
def test_the_interpreter_ends(body):
    code = f"import sys, threading, time\nfrom flowedu.data import Prefetcher\n{body}"
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=HANGS)
    assert r.returncode == 0 and r.stderr == ""


def test_ctrl_c_interrupts_a_consumer_that_waits():
    code = ("import signal, threading\nfrom flowedu.data import Prefetcher\n"
            "e, main = threading.Event(), threading.main_thread().ident\n"
            "ctrl_c = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))\n"
            "try:\n    p = Prefetcher(lambda: (ctrl_c.start(), e.wait(1e5)))\n    p.get()\n"
            "except KeyboardInterrupt: print('interrupted'); e.set()\n")
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=HANGS)
    assert r.stdout == "interrupted\n" and r.stderr == ""


def test_a_child_process_does_not_wait_for_a_thread_it_does_not_have():
    code = ("import os, threading\nfrom flowedu.data import Prefetcher\n"
            "hold = threading.Event()\n"
            "p = Prefetcher(lambda: hold.wait(1e5))\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try: p.get()\n"
            "    except RuntimeError as e: print('fork' in str(e), flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(pid, 0); hold.set()\n")
    r = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, encoding="utf-8",
                       timeout=HANGS)
    assert r.stdout == "True\n" and r.stderr == ""


def test_invalid_arguments_are_refused():
    with refused(ArgumentError, "produce", "next"):
        Prefetcher([1, 2])
    for depth in (0, -1, 1.5, True):
        with refused(ArgumentError, "depth"):
            Prefetcher(lambda: 1, depth)
