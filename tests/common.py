"""Helpers for several test files: jobs from plain functions, error messages, other people's programs, and
folders.
"""
import ast
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

HANGS = 600     # seconds until a test counts as hanging, on any machine; passing tests never wait this long


def load_tool(name: str) -> ModuleType:
    """Return a new module that runs the file tools/NAME.py."""
    path = Path(__file__).parents[1] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tools_{name}", path)
    # dataclasses look up their module in sys.modules
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = Path(__file__).parent / "programs"


def read_definitions(program: str, *names: str, edit: tuple[str, str] = ("", ""), **namespace) -> list:
    """Execute functions and classes of tests/programs/PROGRAM.py, and return them.

    The rest of the program is not run: `namespace` holds the global names that the definitions use. `edit` is
    a pair (old, new) of text to replace in the program.
    """
    path = PROGRAMS / f"{program}.py"
    text = path.read_text(encoding="utf-8")
    assert edit[0] in text
    tree = ast.parse(text.replace(*edit) if edit[0] else text)
    tree.body = [node for node in tree.body if getattr(node, "name", "") in names]
    exec(compile(tree, str(path), "exec"), namespace)
    return [namespace[name] for name in names]


@pytest.fixture(autouse=True)
def fresh_session():
    """Start every test without jobs, variables, seeds, and threads of an earlier one. Import it to use it."""
    flow.clear_default_session()
    flow.random.seed(None)
    flow.set_num_threads(1)
    yield
    flow.clear_default_session()
    flow.random.seed(None)
    flow.set_num_threads(1)


@pytest.fixture
def clean(tmp_path, monkeypatch):
    """Use an empty folder and one thread, because tests run in parallel. (lesson.fresh and own_registry
    isolate a page's session and the registry.)
    """
    monkeypatch.chdir(tmp_path)
    threads = flow.get_num_threads()
    flow.set_num_threads(1)
    yield
    flow.set_num_threads(threads)


def job(body, *examples, returns=tp.Numpy, type="predict", config=None, name="job"):
    """Define `body` as a job whose placeholders have the shapes and dtypes of the example arrays."""
    def fn(*blobs):
        return body(*blobs)

    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    fn.__name__ = name
    fn.__signature__ = inspect.Signature(
        [inspect.Parameter(f"x{i}", plain, annotation=tp.Numpy.Placeholder(a.shape, as_dtype(a.dtype)))
         for i, a in enumerate(examples)], return_annotation=returns)
    return flow.global_function(type, config)(fn)


def run(body, *arrays, **options):
    """Return the result of `body` as a job on these arrays, in a separate session."""
    flow.clear_default_session()
    return job(body, *arrays, **options)(*arrays)


def run_eagerly_and_as_job(f, *arrays, tolerance=1e-5):
    """Return the result of `f` after checking that it is the same eagerly and as a job."""
    eager = f(*map(flow.tensor, arrays)).numpy()
    np.testing.assert_allclose(run(f, *arrays), eager, rtol=tolerance, atol=tolerance)
    return eager


def variable_values():
    """Return {name: array} of all variables of the session."""
    return {name: variable.numpy() for name, variable in flow.get_all_variables().items()}


def weights_after_steps(optimizer, steps, slope=0.5, start=1.0, shape=(1,), **variable):
    """Return w after each step of minimizing slope * w, whose gradient is always `slope`."""
    def body(g):
        w = flow.get_variable("w", shape, initializer=constant(start), **variable)
        optimizer.minimize(w * g)
        return w

    flow.clear_default_session()
    step = job(body, np.full(shape, slope, np.float32), type="train")
    weights = []
    for _ in range(steps):
        step(np.full(shape, slope, np.float32))
        weights.append(variable_values()["w"].ravel()[0])
    return weights


def write_numbered_records(folder, count, parts=1, **names):
    """Write `count` records whose feature "i" is 0, 1, ..., and return the folder as a string."""
    with flow.data.ofrecord_writer(folder, parts, **names) as writer:
        for i in range(count):
            writer.write({"i": np.int32(i)})
    return str(folder)


def as_list(result):
    """Return a tuple or list as a list, and anything else as a list of one element."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def flatten(result):
    """Return the elements of nested tuples and lists in order; a Size counts as one element."""
    if isinstance(result, (tuple, list)) and type(result).__name__ != "Size":
        return [element for part in result for element in flatten(part)]
    return [result]


def leaf(*values):
    """Return a float64 tensor of these values that requires a gradient."""
    return flow.tensor(np.array(values, np.float64), requires_grad=True)


def constant_rate(rate):
    return flow.optimizer.PiecewiseConstantScheduler([], [rate])


def constant(value):
    """Return an initializer for the array `value`."""
    return lambda shape, dtype, seed: np.broadcast_to(np.asarray(value, dtype.numpy), shape)


def f32(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def few(rows, quick, simulated=lambda row: False):
    """Return similar rows for `parametrize`: `make test` runs those with `quick(row)`, and `make test-all`
    runs all of them. Rows with `simulated(row)` run only with the GPU simulator.
    """
    def marks(row):
        return [*[pytest.mark.slow] * (not quick(row)), *[pytest.mark.simulator] * simulated(row)]

    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=marks(row)) for row in rows]


class refused:
    """Context manager `with refused(ValueError, "word"):` that expects a FlowError of this type. Its message
    must have the expected value, the received value, a fix, the line of the test, and all these words.
    """

    def __init__(self, error, *words, at=True, fix=True):
        self.error = error
        self.words = words
        self.at = at
        self.fix = fix

    def __enter__(self):
        self.context = pytest.raises(self.error)
        self.info = self.context.__enter__()
        return self

    def __exit__(self, *exc):
        caught = self.context.__exit__(*exc)
        if caught:
            e = self.info.value
            assert isinstance(e, FlowError), f"not one of ours: {e!r}"
            got = e.got or isinstance(e, KernelError)  # KernelErrors have the index in the first line
            assert e.problem and e.expected and got and (e.fix or not self.fix), f"incomplete message: {e}"
            assert not self.at or e.at.startswith(("test_",
                                                   "common.py")), f"does not name the user's line: {e}"
            for word in self.words:
                assert word in str(e), f"{word!r} is not in: {e}"
        return caught
