"""Names in an answer: builtins are Python's, even if the module of the answer has ops of the same name."""
import ast
import builtins
import importlib
import inspect

import pytest

from common import few
from flowedu import swap
from flowedu_course import course
from flowedu_course.judge import judged
from flowedu_course.teach import stubs
from flowedu_course.teach.bench import Bench

PLAIN = [n for n in vars(builtins) if not n.startswith("_")]
HELD = [h for h in course.holes() if not h.is_separate]
OPS_OF_THE_SAME_NAME = [h for h in HELD if any(n in vars(importlib.import_module(h.module)) for n in PLAIN)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree") as b:
        yield b


@pytest.mark.parametrize("hole", HELD, ids=lambda h: h.id)
def test_builtin_names_in_an_answer_are_pythons(hole, tmp_path):
    """This holds where an answer is judged and where the library runs it."""
    assert not {*PLAIN} & {*hole.at_hand}, "an answer needs an op that it cannot reach"
    file, module = tmp_path / "answer.py", importlib.import_module(hole.module)
    file.write_text("".join(f"def {n}(*args, **named):\n    return "
                            f"{{{', '.join(f'{b!r}: {b}' for b in PLAIN)}}}\n"
                            for n in hole.functions), encoding="utf-8")
    space = swap.load(file, module)
    said = [space[n]() for n in hole.functions]
    for path, name in zip(hole.objects, hole.functions):
        owner, field, _ = swap.target(module, path)
        if not hasattr(owner, "rules"):
            f = swap.plain(inspect.getattr_static(owner, field))
            with swap.swapped(f, space[name]):
                said.append(f())
    for names in said:
        assert all(names[n] is getattr(builtins, n) for n in PLAIN)


@pytest.mark.parametrize("hole", few(OPS_OF_THE_SAME_NAME, lambda h: h in OPS_OF_THE_SAME_NAME[:2]),
                         ids=lambda h: h.id)
def test_an_answer_may_use_builtins(hole, tmp_path, bench):
    tree = ast.parse(stubs.answer_text(hole))
    for f in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
        f.body[:0] = ast.parse("assert sum(range(4)) == 6 and abs(-1) == pow(1, 2) == round(1.2)\n"
                               "assert slice(3).stop == 3").body
    file = tmp_path / hole.file
    file.write_text(ast.unparse(tree), encoding="utf-8")
    for verdict in (judged(hole, file), bench.judged(hole, file)):
        assert verdict.state == "right", verdict


def test_a_function_that_shadows_builtins_keeps_its_globals():
    space = {"__name__": "mine", "fresh": lambda graph: "mine"}
    exec("def mine(graph):\n    return fresh(graph)\n", space)
    library = {"__name__": "library", "fresh": lambda graph: "the library's"}
    exec("def walk(graph):\n    return fresh(graph)\n", library)
    with swap.swapped(library["walk"], space["mine"]):
        assert library["walk"](1) == "mine"
    assert (library["walk"](1) == "the library's" and set(library) == {"__name__", "__builtins__", "fresh",
                                                                       "walk"})
