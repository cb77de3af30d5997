"""Trivial edits of a stub, generated from its syntax tree. None of them may earn a point.

    for name, text in edits(hole, before).items(): ...        before: the preceding exercise, or None
"""
from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator

from flowedu_course import kernels
from flowedu_course.handout import stub
from flowedu_course.laws import Verdict
from flowedu_course.teach.report import Mark
from flowedu_course.teach.stubs import answer_text

CONSTANTS = ("None", "0", "1", "-1", "True", "''", "()", "[]", "{}")
OF_A_PARAMETER = ("{}", "list({})", "tuple({})", "{}[0]", "len({})", "{}.shape")
NOTHING = {".pyx": "    cdef int nothing = 0\n", ".cu": "    int nothing = 0;\n"}


def earned(hole, verdict: Verdict) -> float:
    """Return the points of a verdict."""
    return Mark(hole, verdict.state, verdict.stars, verdict.law, "", {}, verdict.of).score


def edits(hole, before=None) -> dict[str, str]:
    """Return {description of the edit: work file}, without duplicate files."""
    texts: dict[str, str] = {}
    for name, text in _kernel(hole, before) if hole.is_compiled else _python(hole, before):
        texts.setdefault(text, name)
    return {name: text for text, name in texts.items()}


def _python(hole, before) -> Iterator[tuple[str, str]]:
    text = stub(hole)
    tree = ast.parse(text)
    many = max(len(f.args.args) for f in _functions(tree))
    yield "a comment", text + "\n# my answer\n"
    yield "a dead line", _each(tree, lambda f: f.body.insert(0, ast.parse("nothing = 0").body[0]))
    values: list[Callable[[ast.FunctionDef], str]] = [lambda f, v=v: v for v in CONSTANTS]
    values += [lambda f, v=v, i=i: v.format(f.args.args[min(i, len(f.args.args) - 1)].arg if f.args.args
                                            else "None")
               for i in range(many) for v in OF_A_PARAMETER]
    for value in values:
        told = value(_functions(tree)[0])
        yield f"return {told}", _each(tree, lambda f, value=value: f.body.__setitem__(slice(None),
                                                                                      _returned(value(f))))
        if hole.stub:                              # the body runs, and another value is returned
            yield f"its body, then return {told}", _each(tree, lambda f, value=value: _give(f, value(f)))
    if before is not None and not before.is_separate:
        named = "".join(f"\n{name} = {before.functions[min(i, len(before.functions) - 1)]}\n"
                        for i, name in enumerate(hole.functions))
        yield f"the answer of {before.id}", answer_text(before) + named


def _kernel(hole, before) -> Iterator[tuple[str, str]]:
    """Yield a few edits of a kernel, since each takes seconds to compile."""
    text = stub(hole)
    yield "a comment", text + {".pyx": "\n# my answer\n"}.get(hole.ending, "\n/* my answer */\n")
    if hole.language == "formula":
        for value in ("1", "a", "(a + 0)", "(a * a)"):
            yield f"all {value}", re.sub(r"(X\(\w+,).*?\)( *\\?)$", rf"\1 {value})\2", text, flags=re.M)
        return
    head = r"^(cdef int \w+\(.*:\n)" if hole.ending == ".pyx" else r"(__global__[^{;]*\{\n)"
    yield "a dead line", re.sub(head, rf"\1{NOTHING[hole.ending]}", text, flags=re.M)
    if before is not None and before.language == hole.language:
        yield f"the answer of {before.id}", re.sub(rf"\b{before.functions[0]}\b", hole.functions[0],
                                                   kernels.answer(before))


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [n for n in tree.body if isinstance(n, ast.FunctionDef)]


def _each(tree: ast.Module, change: Callable[[ast.FunctionDef], object]) -> str:
    """Return the source with every top-level function changed."""
    new = copy.deepcopy(tree)
    for f in _functions(new):
        change(f)
    return ast.unparse(ast.fix_missing_locations(new)) + "\n"


def _returned(value: str) -> list[ast.stmt]:
    return ast.parse(f"return {value}", mode="exec").body if value else []


def _give(f: ast.FunctionDef, value: str) -> None:
    for node in ast.walk(f):
        if isinstance(node, ast.Return):
            node.value = ast.parse(value, mode="eval").body
