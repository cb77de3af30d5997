"""`at:` of an error is the user's own line, even if the standard library calls flowedu on behalf of the
user.
"""
import contextlib
import functools
import multiprocessing.pool
import runpy
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import flowedu as flow
from flowedu.utils.data import DataLoader, TensorDataset

A, B = flow.ones(2, 3), flow.ones(4, 5)
wrong = functools.partial(flow.matmul, A, B)


def in_thread():
    seen = []

    def keep(arguments):
        seen.append(arguments.exc_value)

    old, threading.excepthook = threading.excepthook, keep
    try:
        thread = threading.Thread(target=flow.matmul, args=(A, B))
        thread.start()
        thread.join()
    finally:
        threading.excepthook = old
    raise seen[0]


def by_executor():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(flow.matmul, A, B).result()


def by_pool():
    with multiprocessing.pool.ThreadPool(1) as pool:
        pool.starmap(flow.matmul, [(A, B)])


def in_dataclass():
    @dataclass
    class Record:
        x: object = field(default_factory=wrong)

    Record()


def in_context():
    @contextlib.contextmanager
    def context():
        yield
        flow.matmul(A, B)

    with context():
        pass


def at_exit_of_a_stack():
    with contextlib.ExitStack() as stack:
        stack.callback(flow.matmul, A, B)


def cached():
    functools.lru_cache(flow.matmul)(A, B)


def by_a_tuple():
    class Pair(namedtuple("Pair", "a b")):
        def __new__(cls, a, b):
            return super().__new__(cls, a, flow.matmul(a, b))

    Pair(A, B)


CALLS = {
    "directly": lambda: flow.matmul(A, B),
    "partial": wrong,
    "map": lambda: [*map(flow.matmul, [A], [B])],
    "sorted": lambda: sorted([B], key=functools.partial(flow.matmul, A)),
    "reduce": lambda: functools.reduce(flow.matmul, [A, B]),
    "lru_cache": cached,
    "Thread": in_thread,
    "executor": by_executor,
    "ThreadPool": by_pool,
    "dataclass": in_dataclass,
    "namedtuple": by_a_tuple,
    "contextmanager": in_context,
    "ExitStack": at_exit_of_a_stack,
    "collate": lambda: [*DataLoader(TensorDataset(A), collate_fn=lambda _: flow.matmul(A, B))],
    "default_collate": lambda: [*DataLoader([flow.ones(2), flow.ones(3)], batch_size=2)],
}


@pytest.mark.parametrize("how", CALLS)
def test_the_line_is_in_this_file(how):
    with pytest.raises(flow.errors.FlowError) as e:
        CALLS[how]()
    assert e.value.at.startswith(f"{Path(__file__).name}:"), e.value


@pytest.mark.parametrize("run", [lambda p: runpy.run_path(str(p)),
                                 lambda p: exec(compile(p.read_text(encoding="utf-8"), str(p), "exec"), {})])
def test_the_line_is_in_a_script(tmp_path, run):
    script = tmp_path / "its own.py"
    script.write_text("import flowedu as flow\n\n\nflow.matmul(flow.ones(2, 3), flow.ones(4, 5))\n")
    with pytest.raises(flow.errors.FlowError) as e:
        run(script)
    assert e.value.at == "its own.py:4: flow.matmul(flow.ones(2, 3), flow.ones(4, 5))"


def test_an_installed_package_that_a_script_calls(tmp_path, monkeypatch):
    """The line of the user's script; without any user code, the line of the package."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "helper_of_a_script.py").write_text(
        "import flowedu as flow\n\n\ndef wrong():\n    flow.matmul(flow.ones(2, 3), flow.ones(4, 5))\n")
    monkeypatch.syspath_prepend(str(folder))
    import helper_of_a_script

    with pytest.raises(flow.errors.FlowError) as e:
        helper_of_a_script.wrong()
    assert e.value.at.startswith(f"{Path(__file__).name}:")
