"""Mutation operators for kernels and fault hunts: each changes one token of the text, or drops one barrier.

The text of a hunt must differ from the stub in a few lines only, so the rest of the text stays as it is.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flowedu_course.kernels import answer, answer_ranges
from flowedu_course.teach.mutations import Mutant

# Texts that are not changed: comments, strings, lines of the preprocessor, and the example of a hunt.
PYTHON = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*|^if __name__ [\s\S]*', re.M)
C = re.compile(r'/\*[\s\S]*?\*/|//[^\n]*|"[^"\n]*"|^[ \t]*#[^\n]*', re.M)
# (operator, pattern, replacements); spaces tell a comparison from the brackets of a template.
OPERATORS = (
    ("change_comparison", re.compile(r"(?<= )(?:<=?|>=?|==|!=)(?= )"),
     lambda m: {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",),
                "!=": ("==",)}[m[0]]),
    ("change_arithmetic", re.compile(r"(?<= )[-+](?= )"), lambda m: ("-" if m[0] == "+" else "+",)),
    ("change_constant", re.compile(r"(?<![\w.])\d+(?![\w.])"),
     lambda m: (str(int(m[0]) + 1), str(int(m[0]) - 1))),
    ("change_boolean", re.compile(r"&&|\|\||(?<= )(?:and|or)(?= )"),
     lambda m: ({"&&": "||", "||": "&&", "and": "or", "or": "and"}[m[0]],)),
    ("swap_indices", re.compile(r"\[([^][]+)\]\[([^][]+)\]"),
     lambda m: (f"[{m[2]}][{m[1]}]",) * (m[1] != m[2])),
    ("swap_axes", re.compile(r"\b(threadIdx|blockIdx|blockDim)\.([xy])\b"),
     lambda m: (f"{m[1]}.{'y' if m[2] == 'x' else 'x'}",)),
    ("drop_barrier", re.compile(r"__syncthreads\(\);|\bfe_wait\(\w+\)"),
     lambda m: (";" if m[0].endswith(";") else "pass",)))


def make_text_mutants(hole: Any, text: str) -> Iterator[Mutant]:
    """Yield the mutants of a kernel or a hunt. In a file of the library, only the answer is changed."""
    lines = text.splitlines()
    is_library = hole.is_compiled and text == answer(hole)
    parts = answer_ranges(hole, lines) if is_library else [range(len(lines))]
    changed = {i for part in parts for i in part}
    kept = C if hole.language in ("cuda", "formula") else PYTHON
    code = kept.sub(lambda m: re.sub(r"[^\n]", "\0", m[0]), text)
    start = 0
    for i, line in enumerate(code.splitlines()):
        for operator, pattern, replace in OPERATORS if i in changed else ():
            for m in pattern.finditer(line):
                for new in replace(m):
                    mutated = text[:start + m.start()] + new + text[start + m.end():]
                    yield Mutant(hole, operator, i + 1, f"{m[0]} -> {new}", mutated, lines[i].strip(), text)
        start += len(line) + 1
