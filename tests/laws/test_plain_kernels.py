"""Law: the plain kernels of the course equal their references, even where faster kernels replace them."""
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from common import HANGS, few
from flowedu import _kernels

ROOT = Path(__file__).parents[2]
PLAIN = {"elementwise": ("elementwise",), "matmul": ("matmul",), "reduce": ("sum", "prod", "max", "min"),
         "layout": ("copy", "concat", "slice_grad")}
BESIDE = {"conv_plain": ("conv2d",)}             # outside of core, for reading only, and not registered
CHILD = """
import sys, types
sys.modules["flowedu.fast.kernels"] = types.ModuleType("flowedu.fast.kernels")     # hide the module
import pytest
from laws.test_plain_kernels import BESIDE, plain
from flowedu._kernels import TABLE
import flowedu
TABLE.update(plain(BESIDE))
assert all(TABLE[key] == row for key, row in plain().items()), "the fast kernels are there"
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
"""


def plain(modules: dict[str, tuple[str, ...]] = PLAIN) -> dict:
    """Return {(kernel, dtype): address} of the kernels in _kernels/core, or in other modules."""
    found = {}
    for name, kernels in modules.items():
        table = importlib.import_module(f"flowedu._kernels.{_kernels.ISA}.{name}").table()
        assert set(table) == set(kernels)
        found.update({(k, code): row for k, rows in table.items() for code, row in rows.items()})
    return found


def test_faster_kernels_replace_plain_ones():
    assert not [key for key, row in plain(PLAIN | BESIDE).items() if _kernels.TABLE[key] == row]


@pytest.mark.slow
@pytest.mark.parametrize("law", few([
    "test_kernels.py -k 'equals_reference and (add or mul or where or exp or eq-)'",
    "test_kernels.py -k 'equals_reference and (matmul or sum or prod or max or min)'",
    "test_kernels.py -k 'equals_reference and (contiguous or concat or slice or transpose)'",
    "test_kernels.py -k 'equals_reference and conv2d-'",
    "test_boundaries.py -k 'sum or matmul or bias or gelu or concat'"], lambda law: "conv2d" in law
                                    or "prod" in law),
    ids=["elementwise", "products and reductions", "copies", "convolution", "blocks"])
def test_plain_kernels_pass_the_laws(law):
    # the package under test
    path = os.pathsep.join([str(Path(_kernels.__file__).parents[2]), str(ROOT / "tests")])
    env = {**os.environ, "HYPOTHESIS_PROFILE": "debug", "PYTHONPATH": path}
    file, *which = shlex.split(law)
    done = subprocess.run([sys.executable, "-c", CHILD, f"tests/laws/{file}", *which], cwd=ROOT, env=env,
                          capture_output=True, encoding="utf-8", timeout=HANGS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
