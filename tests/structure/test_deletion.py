"""Rule: the course (core, its kernels, and the errors) does not need the other folders of the package.

In a copy of the package with only these parts, its modules can be imported, and tests/laws and tests/course
pass.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu
from common import HANGS, few

ROOT, TESTS = Path(flowedu.__file__).parent, Path(__file__).parents[1]
LAWS = ("__init__.py", "calls.py", "draws.py", "graphs.py", "test_kernels.py", "test_signatures.py")
FEW = """from hypothesis import settings
settings.register_profile("few", max_examples=5, deadline=None, derandomize=True)
settings.load_profile("few")                # that the laws hold with everything there is tried with more
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return a folder with a package `flowedu` that has only core, and with the tests of core."""
    folder = tmp_path_factory.mktemp("alone")
    package = folder / "flowedu"
    kept = shutil.ignore_patterns("__pycache__")
    for part in ("core", "errors", "_kernels/core"):
        shutil.copytree(ROOT / part, package / part, ignore=kept)
    for p in (ROOT / "_kernels").glob("*.py"):
        shutil.copy(p, package / "_kernels")
    own = {p.stem for p in (ROOT / "_kernels" / "core").glob("*.pyx")}
    for isa in ("base", "v3", "v4"):
        (package / "_kernels" / isa).mkdir()
        for p in (ROOT / "_kernels" / isa).iterdir():
            if p.name == "__init__.py" or p.name.partition(".")[0] in own:
                shutil.copy(p, package / "_kernels" / isa)
    (package / "__init__.py").write_text('"""The course alone."""\n')
    (folder / "conftest.py").write_text(FEW, encoding="utf-8")
    (folder / "laws").mkdir()
    for name in LAWS:
        shutil.copy(TESTS / "laws" / name, folder / "laws")
    shutil.copytree(TESTS / "course", folder / "course", ignore=kept)
    return folder


def run_in_folder(folder, *arguments):
    # An installed flowedu is found by a finder or a .pth file of the environment: -S leaves both out.
    paths = [str(folder), *(p for p in sys.path if p.endswith("site-packages"))]
    return subprocess.run([sys.executable, "-S", "-P", *arguments], cwd=folder, capture_output=True,
                          encoding="utf-8",
                          timeout=2 * HANGS, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


def test_every_module_of_core_can_be_imported_alone(alone):
    script = ("import importlib, pkgutil, sys, flowedu.core\n"
              "for m in pkgutil.walk_packages(flowedu.core.__path__, 'flowedu.core.'): "
              "importlib.import_module(m.name)\nprint(flowedu.__file__, len([m for m in sys.modules if "
              "m.startswith('flowedu.core.')]))\n")
    said = run_in_folder(alone, "-c", script)
    assert said.returncode == 0, said.stderr[-3000:]
    file, count = said.stdout.split()
    assert Path(file).is_relative_to(alone) and int(count) > 80


@pytest.mark.parametrize("what", few(["laws", "course"], lambda what: what == "course"))
def test_tests_of_core_pass_alone(alone, what):
    said = run_in_folder(alone, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-c", os.devnull,
                         "--rootdir", ".", what)
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-1000:]
    assert "passed" in said.stdout or "[100%]" in said.stdout
