"""What several test files share: jobs made from plain functions, errors that must say everything, and places to run in."""
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from flowedu.core.values.dtype import as_dtype
from flowedu.errors import FlowError, KernelError

HANGS = 600     # seconds after which something hangs, on however slow a machine: where all is well nobody waits for them


def load_tool(name: str) -> ModuleType:
    """Return a new module that runs the file tools/NAME.py."""
    path = Path(__file__).parents[1] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tools_{name}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)        # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def fresh_session():
    """Every test starts without jobs, variables, seed and threads of an earlier one. Import it to use it."""
    flow.clear_default_session()
    flow.random.seed(None)
    flow.set_num_threads(1)
    yield
    flow.clear_default_session()
    flow.random.seed(None)
    flow.set_num_threads(1)


@pytest.fixture
def clean(tmp_path, monkeypatch):
    """An empty folder, and threads that do not wait for each other: tests run side by side. (A page's session, and the
    registry: lesson.fresh, own_registry.)"""
    monkeypatch.chdir(tmp_path)
    threads = flow.get_num_threads()
    flow.set_num_threads(1)
    yield
    flow.set_num_threads(threads)


def job(body, *examples, returns=tp.Numpy, type="predict", config=None, name="job"):
    """`body` as a job whose placeholders have the shapes and dtypes of the example arrays."""
    def fn(*blobs):
        return body(*blobs)

    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    fn.__name__ = name
    fn.__signature__ = inspect.Signature(
        [inspect.Parameter(f"x{i}", plain, annotation=tp.Numpy.Placeholder(a.shape, as_dtype(a.dtype)))
         for i, a in enumerate(examples)], return_annotation=returns)
    return flow.global_function(type, config)(fn)


def run(body, *arrays, **options):
    """The result of `body` as a job on these arrays, in a session of its own."""
    flow.clear_default_session()
    return job(body, *arrays, **options)(*arrays)


def constant_rate(rate):
    return flow.optimizer.PiecewiseConstantScheduler([], [rate])


def constant(value):
    """An initializer for the array `value`."""
    return lambda shape, dtype, seed: np.broadcast_to(np.asarray(value, dtype.numpy), shape)


def f32(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def few(rows, quick, simulated=lambda row: False):
    """Rows for `parametrize`, of many alike: `make test` runs those with `quick(row)`, `make test-all` the others, too;
    those with `simulated(row)` where there is the simulator of a GPU."""
    def marks(row):
        return [*[pytest.mark.slow] * (not quick(row)), *[pytest.mark.simulator] * simulated(row)]

    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=marks(row)) for row in rows]


class refused:
    """`with refused(ValueError, "word"):` the block raises a FlowError of this kind whose message says what was expected,
    what came, and how to mend it, names the line of the test, and has all these words."""

    def __init__(self, error, *words, at=True, fix=True):
        self.error, self.words, self.at, self.fix = error, words, at, fix

    def __enter__(self):
        self.context = pytest.raises(self.error)
        self.info = self.context.__enter__()
        return self

    def __exit__(self, *exc):
        caught = self.context.__exit__(*exc)
        if caught:
            e = self.info.value
            assert isinstance(e, FlowError), f"not one of ours: {e!r}"
            got = e.got or isinstance(e, KernelError)              # those have the index in the first line
            assert e.problem and e.expected and got and (e.fix or not self.fix), f"incomplete message: {e}"
            assert not self.at or e.at.startswith(("test_", "common.py")), f"does not name the user's line: {e}"
            for word in self.words:
                assert word in str(e), f"{word!r} is not in: {e}"
        return caught
