"""Law of fixes: everything that an error recommends exists. Collects all `fix` texts of the package, and
looks up every dotted name, keyword argument, command, and environment variable in them.
"""
import ast
import functools
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from common import HANGS
from flowedu.diagnostics.function import PublicFunction
from flowedu.errors.elsewhere import ON_DEVICE
from flowedu.errors.extras import EXTRAS, install, requirements
from flowedu.errors.left_out import LEFT_OUT

PACKAGE = Path(flow.__file__).parent
ROOT = PACKAGE.parents[1]
GAP = "\x00"                                               # placeholder for a value in a text
TOLD = "fix", "expected"


def format_expression(node: ast.expr) -> str:
    """Return the text of an expression, with GAP for parts known only at run time."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(format_expression(v) if isinstance(v, ast.Constant) else GAP for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return format_expression(node.left) + format_expression(node.right)
    if isinstance(node, ast.IfExp):
        return f"{format_expression(node.body)}; {format_expression(node.orelse)}"
    return GAP


@functools.cache
def remedies() -> list[tuple[str, str]]:
    """Return (place, text) of the package's fixes."""
    found = [(f"elsewhere: {name}", text) for name, text in ON_DEVICE.items()]
    found += [(f"left out: {row.what}", row.instead) for row in LEFT_OUT]
    for path in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "course").rglob("*.py")]):
        if path.parent.name == "laws":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found += [(f"{path.relative_to(ROOT)}:{node.lineno}", format_expression(k.value))
                          for k in node.keywords if k.arg in TOLD]
    for path in sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxi")]):
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        found += [(path.name, re.sub(r"\{[^}]*\}", GAP, m[1]))
                  for m in re.finditer(r'\bfix=f?"([^"]*)"', text)]
    return found


ROOTS = {"flow": flow, "flowedu": flow, "nn": flow.nn, "F": flow.nn.functional, "np": np,
         "model": flow.nn.Linear(2, 2),
         "x": (flow.Tensor, np.ndarray), "tensor": flow.Tensor, "loss": flow.Tensor}
DOTTED = re.compile(rf"(?<![\w./'\"-])(?:{'|'.join(ROOTS)})(?:\.[A-Za-z_]\w*)+")


def looked_up(text: str):
    """Return the object of a dotted name. Raise AttributeError if it does not exist."""
    head, *rest = text.split(".")
    found, path = ROOTS[head], "flowedu" if head == "flow" else head
    if isinstance(found, tuple):                           # x: a tensor, or an array
        found = next((f for f in found if hasattr(f, rest[0])), found[0])
    for part in rest:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            if not path.startswith("flowedu") or importlib.util.find_spec(path) is None:
                raise
            found = importlib.import_module(path)
    return found


def test_hundreds_of_fixes_are_collected():
    assert len(remedies()) > 1500 and sum(bool(DOTTED.search(t)) for _, t in remedies()) > 250


def test_every_name_exists():
    wrong = []
    for where, text in remedies():
        for m in DOTTED.finditer(text):
            name = m[0]
            if text[m.end():m.end() + 1] == GAP:           # flow.random_{name}: the prefix of a name
                home, _, begun = name.rpartition(".")
                there = any(n.startswith(begun) for n in dir(looked_up(home)))
            else:
                try:
                    looked_up(name)
                    there = True
                except (AttributeError, ImportError):
                    there = False
            if not there:
                wrong.append(f"{where}: {name} in {text!r}")
    assert not wrong, "\n".join(wrong)


def argument_names(f) -> set[str] | None:
    """Return the names of the arguments, or None if any name is accepted."""
    try:
        both = ([f] if not isinstance(f, PublicFunction) or f.choice is None
                else [f.choice.older, f.choice.newer])
        found = [p for g in both for p in inspect.signature(g).parameters.values()]
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in found) else {p.name for p in found}


def test_every_keyword_of_a_call_exists():
    wrong, seen = [], 0
    for where, text in remedies():
        for m in re.finditer(DOTTED.pattern + r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
            name, inside = m[0].partition("(")[0], re.sub(r"\([^()]*\)", "", m[1])
            known = argument_names(looked_up(name))
            for word in re.findall(r"(?<![\w.\"'])([a-z_A-Z]\w*)=(?!=)", inside):
                seen += 1
                if known is not None and word not in known:
                    wrong.append(f"{where}: {name}({word}=) in {text!r}")
    assert seen > 20 and not wrong, "\n".join(wrong)


def test_every_command_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8") if (ROOT / "Makefile").exists() else None
    wrong, seen = [], 0
    for where, text in remedies():
        for module in re.findall(r"python -m ([a-z][\w.]+)", text):
            seen += 1
            wrong += [f"{where}: {text!r}"] if importlib.util.find_spec(module) is None else []
        for target in re.findall(r"`make ([\w-]+)", text):
            seen += 1
            wrong += ([f"{where}: {text!r}"] if makefile and not re.search(rf"^{target}\b.*:", makefile,
                                                                           re.M) else [])
        wrong += [f"{where}: {text!r}" for package in re.findall(r"pip install (\S+)",
                                                                 text) if package not in NEEDED]
    assert seen > 3 and not wrong, "\n".join(wrong)


def test_every_variable_of_the_environment_is_read():
    read_by = {".py", ".pyx", ".pxi", ".h"}              # the simulator reads its variables in C++
    sources = "\n".join(p.read_text(encoding="utf-8") for p in PACKAGE.rglob("*") if p.suffix in read_by)
    for where, text in remedies():
        for name in re.findall(r"\bFLOWEDU_[A-Z_]+", text):
            assert len(re.findall(rf"[\"']{name}[\"'=]", sources)) > 0, f"{where}: {text!r}"


# ---- packages
def test_extras_match_pyproject():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("needs the checkout")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(
        encoding="utf-8"))["project"]["optional-dependencies"]
    for extra in EXTRAS:
        assert requirements(extra) == extras[extra]
        if extra != "cuda":
            command = install(extra)
            assert command.startswith("pip install ") and "flowedu" not in command
            assert re.findall(r'"([^"]*)"|(?<= )([\w-]+)(?= |$)', command.removeprefix("pip install")) == [
                (r, "") if ">" in r else ("", r) for r in extras[extra]]


NEEDED = {"cython", "scipy-openblas32"}  # needed to build and to import; all others: extras.install


USES = {
    "plot": "g = type('G', (flow.nn.Graph,), {'build': lambda self, x: x.exp()})(); g(flow.ones(2)); "
    "g.draw('x', 'memory')", "image": "flow.image.decode(flow.TensorBuffer(np.frombuffer(b'x', np.uint8)))",
    "record": "__import__('flowedu.core.record.record_pb2'); flow.core.record.record_pb2.OFRecord",
    "onnx": "flow.onnx.export(None, 'x')",
    "safetensors": "flow.vision.models.save_weights(flow.nn.Linear(1, 1), 'x')",
    "mpi": "__import__('flowedu.distributed.mpi.process').distributed.mpi.process.has_mpi()",
}


@pytest.mark.parametrize("extra", USES)
def test_a_missing_package_error_names_the_command(extra, tmp_path):
    """Runs in a process that cannot import the package."""
    code = f"""if True:
        import sys
        for name in {EXTRAS[extra]!r}:
            sys.modules[name] = sys.modules[name.partition(".")[0] + ".numpy"] = None
        import numpy as np, flowedu as flow
        try:
            {USES[extra]}
        except flow.errors.FlowError as e:
            print(e.fix)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=HANGS,
                          cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    assert done.stdout.startswith(install(extra)), done.stdout + done.stderr


def test_about_lists_the_commands():
    from flowedu.show.about import about
    for part in filter(None, about()["not installed"].split("; ")):
        extra, command = part.split(": ", 1)
        assert command == install(extra)


def test_pages_only_recommend_published_packages():
    pages = [*ROOT.glob("*.md"), *(p for f in ("chapters", "src", "benchmarks") for p in (ROOT / f).rglob("*")
                                   if p.suffix in (".md", ".py", ".pyx"))]
    assert not [p for p in pages if re.search(r"pip install [\"']?flowedu\b", p.read_text(encoding="utf-8"))]


# ---- pages that describe features and limits


@pytest.mark.parametrize("op", ["tanh", "log1p"])
def test_a_new_formula_becomes_a_public_name(op):
    """Each file that docs/new_op.md names contains two added ops, and their public names exist."""
    page = (ROOT / "docs" / "new_op.md").read_text(encoding="utf-8")
    way = page.partition("\n2. ")[2].partition("\n3. ")[0]
    files = re.findall(r"`((?:\w+/)*\w+\.(?:py|h|txt))`", way)
    assert len(files) == 6
    for file in files:
        path = ROOT / file if file.startswith("tests/") else PACKAGE / file
        assert re.search(rf"\b{op}\b", path.read_text(encoding="utf-8")), f"{file} does without {op}"
    assert getattr(flow.ops.elementwise, op) and getattr(flow, op) and getattr(flow.Tensor, op)


HALF = {                                                   # {name: a call in half precision}
    "Linear": lambda h: flow.nn.Linear(3, 2).to(h)(flow.ones(2, 3, dtype=h)),
    "convolutions": lambda h: flow.nn.Conv2d(3, 2, 3).to(h)(flow.ones(2, 3, 8, 8, dtype=h)),
    "norms": lambda h: flow.nn.LayerNorm(3).to(h)(flow.ones(2, 3, dtype=h)),
    "LSTM": lambda h: flow.nn.LSTM(3, 2).to(h)(flow.ones(2, 2, 3, dtype=h)),
    "losses": lambda h: flow.nn.MSELoss()(flow.ones(2, 3, dtype=h), flow.ones(2, 3, dtype=h)),
}


@pytest.mark.parametrize("word", HALF)
def test_layers_compute_in_half_precision(word):
    """Errors recommend these calls."""
    for half in (flow.float16, flow.bfloat16):
        assert HALF[word](half) is not None
