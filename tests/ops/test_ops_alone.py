"""Chapter 2's folder by itself: the page's section about it runs with only core/ops, a complete autodiff."""
import re
import subprocess
import sys
from pathlib import Path

import flowedu
from common import HANGS

ROOT = Path(flowedu.__file__).parent
PAGE = ROOT.parents[1] / "chapters" / "02_ops" / "README.md"
GIVEN = ("flowedu.core.ops", "flowedu.core.values", "flowedu.core.extensions", "flowedu.errors",
         "flowedu._kernels")
ALONE = f"""
import sys, types

class Nothing_else:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("flowedu.") and name != "flowedu.core" and not name.startswith({GIVEN!r}):
            raise ImportError("not a part of it: " + name)

sys.modules["flowedu"] = bare = types.ModuleType("flowedu")
bare.__path__ = [{str(ROOT)!r}]
sys.meta_path.insert(0, Nothing_else())
"""


def run_python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, encoding="utf-8",
                          timeout=HANGS)


def section(text: str) -> list[tuple[str, str]]:
    """Return [(code, printed output)] of the page's section about the folder."""
    part = re.split(r"^## ", text, flags=re.MULTILINE)
    found = [p for p in part if "src/flowedu/core/ops/` form a small library" in p]
    return re.findall(r"^```python\n(.*?)^```\n```text output\n(.*?)^```", found[0], re.MULTILINE | re.DOTALL)


def test_the_first_page_runs_with_only_the_ops():
    (code, promised), = section(PAGE.read_text(encoding="utf-8"))
    done = run_python(code)
    assert done.returncode == 0 and done.stdout == promised, done.stderr


def test_without_an_interpreter_the_error_names_it():
    done = run_python("from flowedu.core.ops.plain import plain\nplain([1.0]) * plain([2.0])")
    assert "no interpreter runs calls" in done.stderr and "import flowedu.core.eager" in done.stderr


def test_other_modules_are_not_importable():
    assert "not a part of it: flowedu.core.eager" in run_python("import flowedu.core.eager").stderr


GRADIENTS = """
import numpy as np
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.plain import Plain, plain
from flowedu.core.ops.reverse import Recorder, reverse

rng, tried = np.random.default_rng(0), 0
for op in list(REGISTRY.values()):
    if not op.elementwise or not op.rules or op.attrs or op.name in ("where", "relu_grad"):
        continue
    numbers = [rng.uniform(0.3, 0.9, (3, 4)) + (op.domain.get(n) == "above_one") for n in op.inputs]
    inputs, weight = [plain(a) for a in numbers], rng.standard_normal((3, 4))
    def value(given):
        with interpreter(Plain()):
            return float((op(*given).data * weight).sum())
    with interpreter(Plain()), interpreter(Recorder()) as tape:
        y = op(*inputs)
    with interpreter(Plain()):
        found = reverse(tape.calls, [(y, plain(weight))], inputs)
    for i, dx in enumerate(found):
        if dx is None:
            continue
        at, tried = (1, 2), tried + 1
        near = []
        for step in (1e-6, -1e-6):
            moved = [a.copy() for a in numbers]
            moved[i][at] += step
            near.append(value([plain(a) for a in moved]))
        assert abs((near[0] - near[1]) / 2e-6 - dx.data[at]) < 1e-5, (op.name, op.inputs[i])
assert tried > 30, tried
"""


def test_gradients_equal_the_formulas():
    done = run_python(GRADIENTS)
    assert done.returncode == 0, done.stderr
