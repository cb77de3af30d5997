"""A kernel is compiled only once: not again by linking, in a copied folder, or after a change of another
kernel's header.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT, checkout

KEPT = ROOT / "build" / "kernels"
pytestmark = pytest.mark.skipif(not KEPT.is_dir() or os.environ.get("FLOWEDU_DEBUG") == "1",
                                reason="these kernels were not built by make in this folder")


def compiled(folder: Path, *command: str) -> set[str]:
    """Run the command and return the names of the shared objects that it compiled."""
    def dates() -> dict[Path, int]:
        return {p: p.stat().st_mtime_ns for part in ("src", "build/kernels")
                for p in (folder / part).rglob("*.so")}

    before = dates()
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_BUILD_ISA": "native"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {p.name.partition(".")[0] for p, date in dates().items() if date != before.get(p)}


BUILD = ("setup.py", "-q", "build_ext", "--inplace")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """Copy this checkout and its build into a folder with a space in its name; every file gets the current
    date.
    """
    folder = tmp_path_factory.mktemp("a copy") / "flow edu"
    checkout(folder, shutil.copyfile, lambda f: f.startswith(("src/", "tools/", "setup.py", "pyproject",
                                                              "README.md")))
    for path in [*(ROOT / "src").rglob("*.so"), *filter(Path.is_file, KEPT.rglob("*"))]:
        at = folder / path.relative_to(ROOT)
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, at)
    return folder


def test_a_copied_folder_compiles_nothing(copy):
    assert compiled(copy, *BUILD) == set()


@pytest.mark.slow
def test_a_header_recompiles_only_the_files_that_include_it(copy):
    header = copy / "src/flowedu/_kernels/ops/philox.h"
    includes = {p.stem for p in (copy / "src").rglob("*.pyx") if "philox.h" in p.read_text(encoding="utf-8")}
    header.write_text(header.read_text("utf-8") + "\nint fe_planted_in_a_test(void) { return 1; }\n",
                      encoding="utf-8")
    assert includes and compiled(copy, *BUILD) == includes
    assert compiled(copy, *BUILD) == set()


@pytest.mark.slow
def test_the_link_compiles_nothing(copy, tmp_path):
    """Run `pip install -e .` into a folder of this test."""
    assert not compiled(copy, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps",
                        "--no-build-isolation", "--target", str(tmp_path / "there"), "-e", ".")
