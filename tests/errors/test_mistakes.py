"""Law of typical mistakes: each raises a flowedu error with the function or argument, the user's line,
expected or got, and a fix.
"""
import ast
import importlib.util
import linecache
import re
import sys

import numpy as np
import pytest

import flowedu as flow
from common import fresh_session  # noqa: F401
from flowedu import errors
from flowedu.errors.elsewhere import ON_DEVICE
from flowedu.errors.nearest import UnknownNameError

from .mistakes import ROWS, SETUP

FILE = "mistake.py"                                         # file name of the programs
pytestmark = pytest.mark.usefixtures("fresh_session")


def mistake(program: str) -> BaseException | None:
    """Return the exception of a program's last statement; the other statements must succeed."""
    linecache.cache[FILE] = (len(program), None, program.splitlines(True), FILE)
    known = {"__name__": "mistake"}
    exec(SETUP, known)
    *first, last = ast.parse(program).body
    exec(compile(ast.Module(first, []), FILE, "exec"), known)
    try:
        exec(compile(ast.Module([last], []), FILE, "exec"), known)
    except Exception as e:
        return e
    finally:
        linecache.cache.pop(FILE, None)


@pytest.mark.parametrize("program,kind,words", ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.filterwarnings("ignore")
def test_the_error_of_a_mistake(program, kind, words):
    e = mistake(program)
    assert isinstance(e, {"UnknownNameError": UnknownNameError,
                          **vars(errors)}[kind]), f"{type(e).__name__}: {e}"
    text = str(e)
    assert e.at.startswith(FILE), f"does not name the user's line: {text}"
    assert e.problem and e.fix and (e.expected or e.got), f"says too little: {text}"
    missing = [word for word in words.split() if word not in text.replace(e.at, "")]
    assert not missing, f"does not say {missing}: {text}"


def test_at_least_a_hundred_mistakes():
    assert len({program for program, _, _ in ROWS}) == len(ROWS) > 100


def test_a_missing_method_gets_pythons_suggestion(capsys):
    e = mistake("x.reluu()")
    assert type(e) is AttributeError and (e.name, "Tensor" in str(e)) == ("reluu", True)
    sys.__excepthook__(type(e), e, e.__traceback__)          # printed when the exception ends a program
    assert "Did you mean: 'relu'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ON_DEVICE)
def test_recommended_replacements_exist(name):
    """Each dotted name in a fix can be looked up, and the missing name is indeed missing in the usual
    modules.
    """
    home, _, last = name.rpartition(".")
    # flow.checkpoint is the 0.4 API
    homes = flow.nn, flow.utils, flow.cuda, *([flow] if name != "checkpoint" else [])
    homes = [flow.nn.ReLU() if home == "x" else eval(home, {"flow": flow})] if home else homes
    assert not any(hasattr(m, last) for m in homes), "it is there now"
    known = {"flow": flow, "nn": flow.nn, "np": np, "model": flow.nn.Linear(2, 2), "graph": flow.nn.Graph(),
             "x": flow.ones(2), "loss": flow.ones(())}
    for text in re.findall(rf"\b(?:{'|'.join(known)})(?:\.[a-z_A-Z]\w*)+",
                           ON_DEVICE[name].replace("flowedu.", "")):
        try:
            eval(text, known)
        except AttributeError:
            importlib.import_module(text.replace("flow", "flowedu", 1))
    for text in re.findall(r"\b(flow\.tensor\(.*|isinstance\(.*)", ON_DEVICE[name]):
        eval(text, known)
    for module in re.findall(r"python -m ([\w.]+)", ON_DEVICE[name]):
        assert importlib.util.find_spec(module)
