"""Checks of an exercise's text: its sentences, and the names that it lists for the answer (Hole.uses)."""
from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from flowedu.swap import names
from flowedu_course import handout
from flowedu_course.teach import stubs

WIDEST = 140                                       # columns of a line
CONDITION = re.compile(r"\b(if|unless|until|when|while)\b", re.IGNORECASE)
IMPORT = re.compile(r"from [\w.]+ import \w+")
# Names in scope that the library's answers use and no exercise lists: classes in type hints, modules for
# other ways to write an answer, and helpers that are a part of the answer.
UNLISTED = handout.PARTS_OF_ANSWERS | {
    "Buffer", "Counter", "FlowError", "GraphValue", "Layout", "Node", "Operand", "Pass", "Sequence", "Signature",
    "Spec", "boxes", "deque", "math", "merge_axes", "wrong_dtype"}


def sentences(text: str) -> list[str]:
    """Return the sentences of a task, one per item of a list."""
    parts = re.split(r"^\d\. |(?<=[.?!:;])\s+", text.strip(), flags=re.MULTILINE)
    return [" ".join(s.split()) for s in parts if s.strip()]


def faults(hole) -> Iterator[str]:
    """Yield the faults of the sentences and of the list of names."""
    yield from (f"more than one condition: {s}" for s in sentences(hole.task)
                if len(CONDITION.findall(s)) > 1)
    if not hole.example:
        yield "there is no example"
    for entry in hole.uses:
        if len(entry) > WIDEST or not entry.partition(": ")[2]:
            yield f"uses: expected a name, a colon, and a meaning in {WIDEST} characters; got: {entry}"
    if not hole.is_separate:
        yield from _wrong_names(hole)


def _wrong_names(hole) -> Iterator[str]:
    space = names(stubs.module_of(hole))
    for line in IMPORT.findall("\n".join(hole.uses)):
        exec(line, space)
    roots = set()
    for entry in hole.uses:
        others = " ".join([handout.stub(hole).rpartition('"""')[2], hole.task,
                           *(t for t in hole.uses if t != entry)])
        head = ast.parse(f"[{entry.partition(': ')[0]}]", mode="eval").body
        for node in head.elts:
            root = _root(node)
            roots.add(root)
            if root not in space and not re.search(rf"\b{root}s?\b", others, re.IGNORECASE):
                yield f"uses: {root} is neither in scope nor explained"
            if root in space and isinstance(node, ast.Call):
                yield from _wrong_call(node, eval(ast.unparse(node.func), space))
    if left := {*hole.at_hand} - roots - UNLISTED:
        yield f"uses: {', '.join(sorted(left))} not listed"


def _root(node: ast.expr) -> str:
    """Return the first name of an expression such as a.b, a[0], or a.b(c)."""
    while not isinstance(node, ast.Name):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id


def _wrong_call(node: ast.Call, f) -> Iterator[str]:
    """Compare the names of a call's arguments with the parameters of a function."""
    try:
        known = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):                # a compiled function
        return
    if any(p.kind == p.VAR_POSITIONAL for p in known):
        return
    want = [p.name for p in known]
    places = all(a.id == n for a, n in zip(node.args, want) if isinstance(a, ast.Name))
    if not places or len(node.args) > len(want) or not {k.arg for k in node.keywords} <= {*want}:
        yield f"uses: {ast.unparse(node)} has the parameters {', '.join(want)}"
