"""The distributed packages: a wheel, installed in an environment with only its requirements, and an sdist."""
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from house import ROOT, checkout

import flowedu as flow
from common import HANGS

SRC = ROOT / "src"
STEP = """import flowedu as flow
from flowedu import nn
model = nn.Linear(3, 2)
before, optimizer = model.weight.numpy().copy(), flow.optim.SGD(model.parameters(), lr=0.1)
nn.CrossEntropyLoss()(model(flow.ones(4, 3)), flow.arange(4) % 2).backward()
optimizer.step()
print(abs(before - model.weight.numpy()).max() > 0, flow.__version__, flow.__file__)
"""
TORCH = "import sys, torch\nprint(torch.ones(2, 2).mm(torch.ones(2, 2)).sum().item(), sys.argv[1:])\n"
PLACES = "flow.ones(2).", "flow.", "flow.nn."


def ran(*command, cwd, **settings) -> str:
    """Run a command outside of a checkout, without network access and our paths, and return its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FLOWEDU", "PIP"))}
    done = subprocess.run([*map(str, command)], cwd=cwd, env={**env, "PIP_NO_INDEX": "1", **settings},
                          encoding="utf-8", capture_output=True, timeout=2 * HANGS)
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def wheel(folder: Path) -> Path:
    """Run `pip wheel .`, reusing the kernels that are compiled for this checkout."""
    shutil.copytree(ROOT / "build" / "kernels", folder / "build" / "kernels")
    ran(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", ".", "-w", "dist",
        cwd=folder)
    found, = (folder / "dist").glob("*.whl")
    return found


def list_archive(file: Path) -> set[str]:
    with zipfile.ZipFile(file) as z:
        return {*z.namelist()}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Create a checkout with its wheel in dist/."""
    folder = tmp_path_factory.mktemp("package") / "flow edu"
    checkout(folder)
    wheel(folder)
    return folder


@pytest.fixture(scope="module")
def fresh(home, tmp_path_factory):
    """Return the Python of a new environment with only the wheel and its declared requirements."""
    folder = tmp_path_factory.mktemp("fresh")
    ran(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    file, = (home / "dist").glob("*.whl")
    ran(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", file, cwd=folder)
    site = Path(ran(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))",
                    cwd=folder).strip())
    with zipfile.ZipFile(file) as z:
        metadata, = [n for n in z.namelist() if n.endswith(".dist-info/METADATA")]
        needs = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", z.read(metadata).decode(), re.MULTILINE)
    assert {"numpy", "scipy-openblas32"} <= {*needs}
    for need in needs:
        for top in {f.parts[0] for f in importlib.metadata.distribution(need).files} - {"..", "__pycache__"}:
            (site / top).symlink_to(importlib.metadata.distribution(need).locate_file(top))
    return python


@pytest.mark.slow
def test_a_wheel_in_a_fresh_environment(fresh, tmp_path):
    (tmp_path / "train.py").write_text(TORCH, encoding="utf-8")
    learnt, version, file = ran(fresh, "-c", STEP, cwd=tmp_path).split()
    assert (learnt, version) == ("True", flow.__version__) and Path(file).is_relative_to(fresh.parents[1])
    about = ran(fresh, "-m", "flowedu", cwd=tmp_path)
    assert re.search(rf"^flowedu +{version}, {re.escape(str(Path(file).parent))}$", about,
                     re.MULTILINE), about
    said = ran(fresh, "-m", "flowedu.mock", "--as", "torch", "train.py", "--epochs", "1", cwd=tmp_path)
    assert "8.0 ['--epochs', '1']" in said
    assert ran(fresh, "-c", "import importlib.metadata as m; print(m.version('flowedu'))",
               cwd=tmp_path) == version + "\n"


@pytest.mark.slow
def test_files_of_a_wheel(home):
    """The wheel has every file of src/ except compiler sources, every compiled module, and the marker for
    type hints.
    """
    file, = (home / "dist").glob("*.whl")
    held = list_archive(file)
    ours = {str(p.relative_to(home / "src")) for p in (home / "src").rglob("*.*") if p.is_file()
            and p.suffix not in (".so", ".pyc", ".pyx") and "egg-info" not in str(p)}
    assert (ours - held == set() and {"flowedu/py.typed", "flowedu-stubs/__init__.pyi",
                                      "flowedu/mock/__main__.py"} <= held)
    compiled = {str(p.relative_to(SRC)) for p in SRC.rglob("*.so")}
    assert compiled == {n for n in held if n.endswith(".so")} and len(compiled) > 50
    assert not [n for n in held if n.partition("/")[0] not in ("flowedu", "flowedu-stubs")
                and not n.startswith(f"flowedu-{flow.__version__}.dist-info/")]


@pytest.mark.slow
def test_an_editor_in_a_fresh_environment_completes(fresh, tmp_path):
    jedi = pytest.importorskip("jedi")
    jedi.settings.cache_directory = str(tmp_path / "cache")
    environment = jedi.create_environment(fresh.parents[1], safe=False)
    offered = {text: {c.name for c in jedi.Script("import flowedu as flow\n" + text,
                                                  path=tmp_path / "program.py",
                                                  project=jedi.Project(tmp_path),
                                                  environment=environment).complete()}
               for text in PLACES}
    assert offered[PLACES[0]] >= {"reshape", "matmul", "to_global", "relu_"}
    assert offered[PLACES[1]] >= {*flow.__all__} and offered[PLACES[2]] >= {"Linear", "Graph", "functional"}


@pytest.mark.slow
def test_an_sdist_is_the_checkout_and_builds(home, tmp_path):
    ran(sys.executable, "-c", "from setuptools import build_meta; print(build_meta.build_sdist('dist'))",
        cwd=home)
    file, = (home / "dist").glob("*.tar.gz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"flowedu-{flow.__version__}"
    tracked = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             cwd=ROOT, encoding="utf-8",
                             capture_output=True, check=True).stdout.split("\0")
    assert not {n for n in tracked if n and (ROOT / n).is_file() and not (folder / n).is_file()}
    first, = (home / "dist").glob("*.whl")
    assert list_archive(wheel(folder)) == list_archive(first) and f"-{flow.__version__}-" in first.name
