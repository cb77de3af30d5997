"""Rule: no internal function has more than 8 parameters. Larger ones take a struct or an object."""
import ast
import re
import types
from pathlib import Path

import pytest

import flowedu as flow

MOST = 8
ROOT = Path(flow.__file__).parent
RULES = "rules of records take the record's columns by name, as many as it has (core/ops/define.py)"
SHARED = "a constructor that public classes share has their parameters"
ALLOWED = {
    **{(f"{d}ops/{name}.py", None): RULES for d, names in (
        ("", ("attention", "conv", "norm", "recurrent", "recurrent_steps", "update_adaptive", "update_sgd")),
        ("fast/", ("conv_last", "norm_clip")))
       for name in names},
    ("oneflow04/image/crop_mirror.py", "_run"): RULES,
    ("oneflow04/custom/optypes.py", "_conv2d"): "an op type's attributes, by the names OneFlow gave them",
    ("oneflow04/conv_layers.py", "layer"): "becomes the public conv1d to conv3d",
    ("nn/modules/conv.py", "__init__"): SHARED,
    ("nn/modules/linear.py", "__init__"): SHARED,
    ("nn/modules/bags.py", "from_pretrained"): "the parameters that PyTorch has",
    ("nn/modules/rnn.py", "_build"): SHARED,
    ("nn/modules/attention.py", "_build"): SHARED,
    ("nn/modules/attention.py", "forward"): "of nn.Transformer: masks, by the names PyTorch gave them",
    ("show/svg.py", "box"): "where it is, and how it looks, most of that by name",
    ("ops/checks.py", "require_range"): "a check, and the words of its error, most of them by name",
    ("core/sbp/choose.py",
     "choose"): "a question about a call, most of it by name; inside it is one Question",
    ("distributed/auto/search.py",
     "automatic"): "what a search is given and its limits, most of them by name",
    **{(f"mock/insides/torch_{file}.py", name): "the parameters that PyTorch has" for file, name in (
        ("parallel", "__init__"), ("onnx", "export"), ("testing", "assert_close"))},
    ("utils/profiler.py", "__init__"): "the parameters that PyTorch has",
    ("vision/ops/blocks.py", "__init__"): "the parameters that torchvision has",
    ("core/eager/entry.pxi", "__cinit__"): "what C keeps of a call, handed over once",
}


def _public() -> set[str]:
    spaces = [flow, flow.Tensor, flow.autograd, flow.data, flow.image, flow.layers, flow.linalg, flow.math,
              flow.nn, flow.nn.functional, flow.nn.init, flow.optim, flow.optim.lr_scheduler, flow.optimizer,
              flow.random, flow.utils.data]
    return {name for space in spaces for name in dir(space) if not name.startswith("_")
            and not isinstance(vars(space).get(name), types.ModuleType)}       # depends on imports


def python_functions(text: str):
    """Yield (name, enclosing class or None, number of parameters without self) of each function."""
    def walk(node, owner):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                a = child.args
                names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
                yield getattr(child, "name", "lambda"), owner, len(names) - (names[:1] in (["self"], ["cls"]))
            yield from walk(child, child.name if isinstance(child, ast.ClassDef) else owner)
    yield from walk(ast.parse(text), None)


def cython_functions(text: str):
    """Yield (name, None, number of parameters) of Cython functions, without declarations of C functions."""
    text = re.sub(r"#.*", "", text)
    for m in re.finditer(r"^ *(?:cdef|cpdef|def)\b[^\n=(]*?\b(\w+)\(", text, re.M):
        at, depth, commas = m.end(), 1, 0
        while depth and at < len(text):
            depth += (text[at] in "([") - (text[at] in ")]")
            commas += depth == 1 and text[at] == ","
            at += 1
        inside = text[m.end():at - 1].strip().rstrip(",")
        if re.match(r"[^\n]*:", text[at:]):
            yield m[1], None, (commas + 1 if inside else 0) - bool(re.match(r"(self|cls)\b", inside))


def too_many(path: str, text: str, public: set[str]) -> list[tuple[str, str]]:
    functions = python_functions if path.endswith(".py") else cython_functions
    return [(path, name) for name, owner, count in functions(text) if count > MOST and not (
        owner in public if name == "__init__" else name in public)]


def _files():
    return [p for end in ("py", "pyx", "pxd", "pxi") for p in ROOT.rglob(f"*.{end}")]


def test_internal_functions_have_few_parameters():
    public = _public()
    found = [f for p in _files() for f in too_many(p.relative_to(ROOT).as_posix(),
                                                   p.read_text(encoding="utf-8"), public)]
    assert not [f for f in found if f not in ALLOWED
                and (f[0], None) not in ALLOWED], "give them a struct or an object"
    used = {*found, *((path, None) for path, _ in found)}
    assert not [a for a in ALLOWED if a not in used], "no longer needed in ALLOWED"


@pytest.mark.parametrize("path, text", [
    ("a.py", "def _f(a, b, c, d, e, f, g, h, i): pass"),
    ("a.py", "class _A:\n def f(self, a, b, c, d, e, f, g, h, *, i): 0"),
    ("a.pyx", "cdef inline void f(const real *a, int b, int c,\n    int e, int g, int k, int h, int i, int "
     "j) nogil:"),
    ("a.pxd", "cdef int f(int a, int b, int c, int d, int e, int f, int g, int h, int (*i)(int)):")])
def test_functions_with_nine_parameters_are_found(path, text):
    assert len(too_many(path, text, set())) == 1
    assert not too_many(path, re.sub(r", (?:\*, )?(?:int )?(?:i|j|\(\*i\)\(int\))\)", ")", text), set())
