"""PyTorch and OneFlow programs run unchanged with the commands of docs/pytorch.md, in a folder with a space
in its name.

tests/programs/oneflow_*.py are the programs of OneFlow's pages with the imports that the pages omit;
tests/programs/torch_*.py are typical PyTorch programs.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from common import HANGS, PROGRAMS, few
from dist.ranks import mpi
from vision import files

ROOT = Path(__file__).parents[2]
# Expected output of some programs; the others print falling losses (1000 classes: ln(1000) = 6.9).
PAGE = r"Using \w+ device\nEpoch 1\n-+\nloss: [67]\.\d+ \[    0/  400\]\nloss: [67]\.\d+ \[  320/  400\]"
PRINTS = {"oneflow_eager_mobilenet": PAGE, "oneflow_graph_mobilenet": PAGE,
          "oneflow_layer": r"\(1, 128, 64, 64\)",
          "oneflow_deploy": r"\(1, 3, 64, 64\)", "oneflow_watch": r"in:  \[.*\]\nout: \[.*\]",
          "torch_mnist": r"(?s)(.*\nTest set: Average loss: 2\.\d+, Accuracy: \d+/78 \(\d+%\)\s*){3}",
          "torch_dcgan": r"(?s)(\[\d/2\]\[\d/4\] Loss_D: .*\n){8}grid \(3, 36, 274\)"}
WRITES = {"torch_classifier": ["checkpoints/best.pt", "runs/classifier/scalars.csv"], "torch_ddp": ["ddp.pt"],
          "torch_vae": ["sample.png", "reconstruction.png"], "torch_dqn": ["dqn.pth"],
          "torch_diffusion": ["samples.png", "diffusion.pt"], "oneflow_deploy": ["1/model/model.mlir"],
          "torch_cifar": ["checkpoint/ckpt.pth"], "torch_chargpt": ["out-char/ckpt.pt"],
          "torch_toy_ddp": ["model.checkpoint"],
          "torch_dcgan": ["out/netG_epoch_1.pth", "out/fake_samples_epoch_001.png"],
          "oneflow_graph_mobilenet": ["GraphMobileNetV2"]}
# Programs whose output equals PyTorch's when weights, noise, and order come from NumPy: {program: arguments
# of each call}.
ALIKE = {"mnist": ["--numpy"], "cifar": ["--numpy --epochs 1 --lr 0.002",
                                         "--numpy --resume --epochs 1 --lr 0.002"],
         "dcgan": ["--numpy", "--numpy --niter 1 --netG out/netG_epoch_1.pth"],
         "chargpt": ["--numpy", "--numpy --resume --max_iters 45"], "toy_ddp": ["2", "1"]}


@pytest.fixture
def folder(tmp_path):
    there = tmp_path / "a folder"
    there.mkdir()
    return there


def typed(folder: Path, *words: str, **env) -> str:
    """Run `python words...` and return stdout; stderr must be empty except for a warning about missing
    tensorboard.
    """
    quiet = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONWARNINGS": "ignore:SummaryWriter:UserWarning"}
    done = subprocess.run([sys.executable, *words], cwd=folder, encoding="utf-8", capture_output=True,
                          timeout=HANGS, env={**os.environ, **quiet, **env})
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("program", few(sorted(p.stem for p in PROGRAMS.glob("*.py")), {
    "oneflow_graph_mobilenet", "oneflow_job", "torch_classifier"}.__contains__))
def test_a_program_runs_as_typed(folder, program):
    name = program.partition("_")[0]
    shutil.copy(PROGRAMS / f"{program}.py", folder)
    pictures(folder)
    out = typed(folder, "-m", "flowedu.mock", "--as", name, f"{program}.py")
    if program in PRINTS:
        assert re.fullmatch(PRINTS[program], out.strip()), out
    else:
        assert falls(out), out
    for path in WRITES.get(program, ()):
        assert (folder / path).exists(), path


def pictures(folder: Path, n: int = 80) -> None:
    files.write_files(folder / "data" / "cifar-10-batches-py", files.cifar10_python(n=n))
    files.write_files(folder / "data" / "MNIST" / "raw", files.mnist(n=n))


NUMBER = r"-?\d+\.?\d*(?:e[-+]?\d+)?"


@pytest.mark.torch
@pytest.mark.parametrize("program", few(ALIKE, lambda name: name == "mnist"))
def test_a_program_prints_what_it_prints_under_pytorch(folder, program):
    """The output has the same words, and numbers that differ only by float32 rounding; each framework reads
    its checkpoints again.
    """
    pytest.importorskip("torch")
    printed = []
    for how in (["-m", "flowedu.mock", "--as", "torch"], []):
        there = folder / ("mock" if how else "torch")
        there.mkdir()
        pictures(there, 32)
        shutil.copy(PROGRAMS / f"torch_{program}.py", there)
        if not how:
            shutil.copy(Path(__file__).with_name("torchvision_stand_in.py"), there / "torchvision.py")
        printed.append([typed(there, *how, f"torch_{program}.py", *words.split(),
                              MASTER_PORT=str(free_port()),
                              OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore") for words in ALIKE[program]])
    for mine, theirs in zip(*printed):
        assert re.sub(NUMBER, "#", mine) == re.sub(NUMBER, "#", theirs)
        a, b = ([float(x) for x in re.findall(NUMBER, out)] for out in (mine, theirs))
        assert len(a) > 5 and a == pytest.approx(b, rel=2e-3, abs=2e-4), mine + theirs


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def falls(out: str) -> bool:
    losses = [float(x) for x in re.findall(r"loss:? *([-+.\de]+)", out, re.IGNORECASE)]
    return len(losses) > 1 and losses[-1] < losses[0]


def test_a_program_of_several_ranks(folder):
    """Run the command of docs/pytorch.md: the mock first, then the launcher of the ranks."""
    shutil.copy(PROGRAMS / "torch_ddp.py", folder)
    out = typed(folder, "-m", "flowedu.mock", "--as", "torch", "-m", "flowedu.distributed.launch",
                "--nproc_per_node", "2", "--engine", "threads", "torch_ddp.py")
    assert out.count("loss") == 4 and falls(out) and (folder / "ddp.pt").exists()


@mpi
@pytest.mark.parametrize("words", [
    "-m flowedu.mock --as oneflow -m flowedu.distributed.launch --nproc_per_node 2 ranks.py a --b",
    "-m flowedu.mock --as oneflow -m oneflow.distributed.launch --nproc_per_node 2 -m ranks a --b",
    "-m flowedu.mock -m torch.distributed.launch --nproc_per_node 2 ranks.py a --b",
    "-m flowedu.distributed.launch --nproc_per_node 2 -m flowedu.mock --as oneflow ranks.py a --b",
    "-m flowedu.mock -m oneflow.distributed.launch --engine threads --nproc_per_node 2 ranks.py a --b"])
def test_the_mock_and_the_launcher_in_either_order(folder, words):
    (folder / "ranks.py").write_text("import sys, oneflow as flow\n"
                                     "print(flow.env.get_rank(), flow.env.get_world_size(), sys.argv[1:])\n")
    assert sorted(typed(folder, *words.split()).splitlines()) == [f"{r} 2 ['a', '--b']" for r in (0, 1)]


def test_the_commands_of_the_page_and_the_tour(folder):
    """Run the commands of docs/pytorch.md unchanged, and the program of docs/tour.md with all packages
    replaced.
    """
    text = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python (-m flowedu\.mock .*?)(?: +#.*)?$", text, re.MULTILINE)
    (folder / "train.py").write_text("import sys, torch, torchvision.transforms\nprint(torch.__version__, "
                                     "sys.argv)\n")
    shown = [typed(folder, *line.split()).splitlines() for line in lines]
    assert shown == [["2.5.0+flowedu ['train.py', '--epochs', '1']"], ["2.5.0+flowedu ['train.py']"] * 2]
    tour = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"),
                     re.DOTALL)[1]
    (folder / "tour.py").write_text(tour, encoding="utf-8")
    assert "-0.7788" in typed(folder, "-m", "flowedu.mock", "tour.py", FLOWEDU_NUM_THREADS="1")
    # flowedu's own section is left out
    (folder / "theirs.py").write_text(tour.partition("# 4. ")[0].replace("flowedu", "oneflow"), "utf-8")
    said = typed(folder, "-m", "flowedu.mock", "--as", "oneflow", "theirs.py", FLOWEDU_NUM_THREADS="1")
    assert said.startswith("[[2.0, -4.0], [6.0, 8.0]]") and "arena" in said


@pytest.mark.slow
def test_snippets_of_the_first_pages_run_as_oneflow(folder):
    """The snippet tests that this project started from pass with `import oneflow` in place of flowedu."""
    for test in ("tests/oneflow04/test_seeds.py", "tests/graph/test_seed_002.py"):
        text, n = re.subn(r"(?m)^( *(?:import|from)) flowedu\b", r"\1 oneflow",
                          (ROOT / test).read_text(encoding="utf-8"))
        assert n > 1 and "import oneflow as flow" in text
        (folder / Path(test).name).write_text(text, encoding="utf-8")
    said = subprocess.run([sys.executable, "-m", "flowedu.mock", "--as", "oneflow", "-m", "pytest", "-q",
                           "-rs", "-p",
                           "no:cacheprovider", "-p", "conftest", "."], cwd=folder, encoding="utf-8",
                          capture_output=True, timeout=HANGS, env={**os.environ, "PYTEST_ADDOPTS": "",
                                              "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'tests/graph'}"})
    assert (said.returncode == 0 and re.search(r"^[.\s]+\[100%\]", said.stdout,
                                               re.MULTILINE)), said.stdout[-3000:]


PAIRS = [("torch", "torchvision"), ("oneflow", "flowvision")]


@pytest.mark.parametrize(("name", "satellite"), PAIRS)
def test_vision_modules_are_available_under_the_companion_name(folder, name, satellite):
    """Every module and public name of flowedu.vision is the same object under the name of the companion
    package.
    """
    (folder / "program.py").write_text(f"""\
import importlib, pathlib, types
import {satellite}
import flowedu.vision
for part in ("datasets", "models", "transforms", "utils", "transforms.functional", "models.resnet",
             "datasets.mnist"):
    here = importlib.import_module(f"flowedu.vision.{{part}}")
    there = importlib.import_module(f"{satellite}.{{part}}")
    names = [n for n in dir(here) if not n.startswith("_")]
    assert names and all(n in dir(there) for n in names), part
    for n in names:
        own, found = getattr(here, n), getattr(there, n)
        modules = isinstance(own, types.ModuleType) and isinstance(found, types.ModuleType)
        assert found is own or modules, (part, n)
print({satellite}.__version__, {satellite}.models.resnet18(weights=None, num_classes=3).fc.out_features)
""", encoding="utf-8")
    assert re.fullmatch(r"0\.\d+\.\d+\+flowedu 3\n", typed(folder, "-m", "flowedu.mock", "--as", name,
                                                           "program.py"))


MISSING = {
    "import {v}.tv_tensors": "of {v}: datasets, io, models, ops, transforms, utils",
    "from {v} import prototype": "of {v}: datasets, io, models, ops, transforms, utils",
    "from {v}.models import resnet_18": "fix:      {v}.models.resnet18",
    "from {n}.nn import Lineer": "fix:      {n}.nn.Linear",
    "from {n} import fft": "flow.fft.rfft",
    "import {v}; {v}.models.resnet_18": "fix:      {v}.models.resnet18",
    "import {v}; {v}.models.resnet18(weights='DEFAULT')": "weights=None",
}


@pytest.mark.parametrize(("name", "satellite"), PAIRS)
def test_missing_names_report_a_fix(folder, name, satellite):
    """Missing names raise Python's usual errors for import, from ... import, and attribute access."""
    (folder / "program.py").write_text(f"""\
for line in {[line.format(n=name, v=satellite) for line in MISSING]}:
    try:
        exec(line)
    except (ImportError, AttributeError, RuntimeError) as e:
        print("=====", e)
""", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "flowedu.mock", "--as", name, "program.py"], cwd=folder,
                          encoding="utf-8",
                          capture_output=True, timeout=HANGS, env={**os.environ,
                                                                   "XDG_CACHE_HOME": str(folder)})
    said = done.stdout.split("=====")[1:]
    assert len(said) == len(MISSING), done.stdout + done.stderr
    for got, want in zip(said, MISSING.values()):
        assert want.format(n=name, v=satellite) in got, got
    assert f"asked for, and not there: {satellite}.models.resnet_18" in done.stderr
