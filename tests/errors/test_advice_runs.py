"""Law: code in a `fix` runs. For every typical mistake, the code in its `fix` runs in the place of the
mistake, and the text of `expected` is meaningful.
"""
import ast
import contextlib
import inspect
import io
import re

import pytest

import flowedu as flow
from common import fresh_session  # noqa: F401
from flowedu.diagnostics.parameters import of_type
from flowedu.errors import FlowError
from flowedu.errors.nearest import UnknownNameError

from .mistakes import ROWS, SETUP

pytestmark = pytest.mark.usefixtures("fresh_session")
# Names that fixes use for objects of the user's program, in addition to those of SETUP.
STAND_INS = """
model, input, y, optim, tp = net, x, w * 2, flow.optim, tp
loss, target, value, data, shape, dtype, axis = w.sum(), x, flow.ones(4, 3), [1], (2, 3), flow.float32, 1
words, instance_dims, dataset, optimizer = ["1", "2"], 1, [1, 2, 3], sgd
a = b = x
"""
BEGINS = re.compile(r"(?<![\w.'\"])(?:flow|nn|np|F|tp|optim|x|input|model|target|loss|y)\.(?=[A-Za-z_])")
# Fixes that belong elsewhere than the mistake: at process start, inside a job, on the object without the
# name, or on a single number.
ON_DEVICE = ("flow.distributed.set_virtual_devices(", "flow.watch(", ".minimize(loss)", "flow.constant(...)",
             "x.item()", "x.reshape(1)", "x.weight")


def pieces(text: str) -> list[str]:
    """Return the longest expressions in a text that begin with a flowedu name and contain no word of the
    sentence around them.
    """
    found, at = [], 0
    for m in BEGINS.finditer(text):
        if m.start() < at:
            continue
        rest = re.split(r"(?<=[\w)\]]) (?:in|is|if|or|and|for|at|not)\b(?![^(]*\))", text[m.start():])[0]
        for end in range(len(rest), 0, -1):
            with contextlib.suppress(SyntaxError):
                if not isinstance(ast.parse(rest[:end], mode="eval").body, ast.Tuple):
                    found.append(rest[:end].strip())
                    at = m.start() + end
                    break
    return found


def run_mistake(program: str) -> tuple[Exception, dict]:
    """Return the exception of the last statement, and the program's names at that time."""
    known: dict = {"__name__": "mistake"}
    exec(SETUP, known)
    *first, last = ast.parse(program).body
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Module(first, []), "mistake.py", "exec"), known)
            exec(compile(ast.Module([last], []), "mistake.py", "exec"), known)
    except Exception as e:
        exec(SETUP + STAND_INS, mine := {})
        return e, {**mine, **known}
    raise AssertionError("it is no mistake")


def follow(piece: str, known: dict) -> None:
    """Run the code; for a call with an ellipsis or a method with side effects, only look up the callee."""
    tree = ast.parse(piece, mode="eval").body
    if isinstance(tree, ast.Call) and any(isinstance(a, ast.Constant) and a.value is ... for a in tree.args):
        piece = ast.unparse(tree.func)
    eval(piece, known)


@pytest.mark.parametrize("program", [row[0] for row in ROWS])
@pytest.mark.filterwarnings("ignore")
def test_recommended_code_runs(program):
    e, known = run_mistake(program)
    for piece in pieces(e.fix):
        if not any(place in piece or piece in place for place in ON_DEVICE):
            try:
                follow(piece, known)
            except Exception as again:
                raise AssertionError(
                    f"{piece} is advised, and raises {type(again).__name__}: {again}\n\n{e}") from None
    assert "another type" not in e.expected + e.fix


def test_extracted_expressions_are_complete():
    for text, found in (("x.tolist() for all, x[0].item() for one, x.sum().item()",
                         ["x.tolist()", "x.sum().item()"]),
                        ("use nn.Linear(5, 4), or reshape the input.", ["nn.Linear(5, 4)"]),
                        ("loss.backward() in build, or flow.where(x > 0, a, b) there",
                         ["loss.backward()", "flow.where(x > 0, a, b)"])):
        assert pieces(text) == found
    assert sum(bool(pieces(run_mistake(row[0])[0].fix)) for row in ROWS[:40]) > 10


def test_exceptions_in_recommended_code_are_detected():
    _, known = run_mistake("net(x.int())")
    for wrong in ("model.to(flow.int32)", "flow.tensr([1])", "flow.tensor(nothing)", "nn.Linear(5)"):
        with pytest.raises((FlowError, AttributeError, NameError, TypeError)):
            follow(wrong, known)


# ---- "expected" is meaningful
HOMES = {"flow": flow, "nn.functional": flow.nn.functional, "Tensor": flow.Tensor, "linalg": flow.linalg,
         "nn.init": flow.nn.init, "math": flow.math}


def public_parameters():
    for home, module in HOMES.items():
        for name in dir(module):
            if name[0] == "_":
                continue
            with contextlib.suppress(TypeError, ValueError, UnknownNameError):
                for p in inspect.signature(getattr(module, name)).parameters.values():
                    if p.name not in ("self", "args", "kwargs"):
                        yield f"{home}.{name}", p


def test_most_parameters_are_described():
    """Only a few of thousands of parameters refer to the docstring of their function, which must exist."""
    silent = [(name, p.name) for name, p in public_parameters() if not of_type(p)]
    assert len([*public_parameters()]) > 2500 and len(silent) < 200, silent
    assert not [p for _, p in silent if p in ("dim", "dtype", "device", "axis", "name", "generator",
                                              "fill_value")]


def test_descriptions_name_existing_functions():
    for _, p in public_parameters():
        for dotted in re.findall(r"\bflow(?:\.\w+)+", of_type(p)):
            eval(dotted, {"flow": flow})
