"""flowedu.mock: `import torch` and `import oneflow` return flowedu while the mock is enabled."""
import importlib
import subprocess
import sys
import textwrap
import types
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS
from flowedu import mock
from flowedu.errors import ArgumentError
from flowedu.mock import modules
from flowedu.mock.names import HOUSE, TABLES

SAME = ["", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "optim", "optim.lr_scheduler",
        "utils.data", "autograd", "cuda", "linalg"]
# names with torch's own arguments: tests/mock/test_mock_torch.py
KINDS = tuple(f"{kind}Tensor" for kind in "Float Double Half BFloat16 Int Long Short Char Byte Bool".split())
OTHER = {("torch", ""): {
    *KINDS, "load", "save", "range", "tensor", "as_tensor", "argsort", "autocast",
    "argwhere", "clamp", "clip", "concat", "diag", "eye", "flatten", "gather",
    "masked_fill", "matmul", "nonzero", "ones", "ones_like", "reshape", "sort", "squeeze", "stack",
    "swapaxes", "transpose", "tril", "triu", "where", "zeros", "zeros_like"},
    ("oneflow", ""): {"autocast"}, ("oneflow", "nn"): {"CrossEntropyLoss"},
    ("oneflow", "nn.functional"): {"cross_entropy"},
    ("torch", "linalg"): {"matmul"}, ("torch", "nn"): {"RMSNorm"}, ("torch", "nn.functional"): {
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "hinge_embedding_loss", "kl_div", "l1_loss", "log_softmax", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin"}, ("torch", "optim"): {
    "Adadelta", "Adagrad", "Adam", "AdamW", "LBFGS", "Optimizer", "RMSprop", "SGD"},
         ("torch", "optim.lr_scheduler"): {
         "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
         "ExponentialLR",
         "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
         "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"}}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Remove all traces of a test, from sys.modules and from the report of missing names."""
    monkeypatch.setattr(modules, "MISSING", Counter())
    monkeypatch.setattr(mock, "MISSING", modules.MISSING)
    before, finders = dict(sys.modules), list(sys.meta_path)
    yield
    while mock.is_enabled("torch") or mock.is_enabled("oneflow"):
        mock.disable()
    assert {k: m for k, m in sys.modules.items() if k.partition(".")[0] in mock.NAMES} == \
        {k: m for k, m in before.items() if k.partition(".")[0] in mock.NAMES}
    assert sys.meta_path == finders


@pytest.mark.parametrize("name", mock.NAMES)
@pytest.mark.parametrize("path", SAME)
def test_every_public_name_is_flowedus_object(name, path):
    """The mock returns the same object, or a module with the same contents, so isinstance, pickling, and
    identity are as in flowedu.
    """
    real = flow
    for part in filter(None, path.split(".")):
        real = getattr(real, part)
    with mock.enable(name):
        mocked = importlib.import_module(f"{name}.{path}" if path else name)
        names = [n for n in getattr(real, "__all__", dir(real)) if not n.startswith("_") and n not in HOUSE]
        assert len(names) > 5
        for n in names:
            own, there = getattr(real, n), getattr(mocked, n)
            if n in OTHER.get((name, path), ()):
                assert there is not own
            elif isinstance(own, types.ModuleType):
                assert isinstance(there, types.ModuleType) and (
                    there is own or there.__name__ == ".".join(filter(None, (name, path, n)))), n
            else:
                assert there is own, n
        assert set(names) <= set(dir(mocked))


@pytest.mark.parametrize("name", mock.NAMES)
def test_submodules_can_be_imported_and_are_attributes(name):
    with mock.enable(name):
        for path in filter(None, {p for table in TABLES[name] for p in table}):
            there = importlib.import_module(f"{name}.{path}")
            top = sys.modules[name]
            for part in path.split("."):
                top = getattr(top, part)
            assert there is top and (dir(there) or path == "compatible"), path


@pytest.mark.parametrize("name", mock.NAMES)
def test_names_in_dir_exist(name):
    """This includes `from torch.optim import *`, and programs that look optimizers up in vars(module)."""
    with mock.enable(name):
        paths = [".".join(filter(None, (name, p))) for p in (*SAME, *(p for t in TABLES[name] for p in t))
                 if not p.startswith("vision.")]
        for path in [*paths, *mock.names.WITH[name][1:]]:
            module = importlib.import_module(path)
            assert not [n for n in dir(module) if not n.startswith("__") and not hasattr(module, n)], path
            exec(f"from {path} import *", {})


@given(st.lists(st.sampled_from([("torch",), ("oneflow",), ("torch", "oneflow"), ()]), max_size=5))
def test_blocks_nest(names):
    original = types.ModuleType("torch")
    installed = {k: sys.modules.pop(k) for k in [*sys.modules] if k.partition(".")[0] == "torch"}
    sys.modules["torch"] = original
    try:
        opened = [mock.enable(*n) for n in names]
        for n in mock.NAMES:
            assert mock.is_enabled(n) == any(not given or n in given for given in names)
        if any(not given or "torch" in given for given in names):
            assert importlib.import_module("torch").nn.Linear is flow.nn.Linear
        for block in reversed(opened):
            block.stop()
            block.stop()
        assert (sys.modules["torch"] is original and not mock.is_enabled("torch")
                and not mock.is_enabled("oneflow"))
    finally:
        del sys.modules["torch"]
        sys.modules.update(installed)


def test_missing_names_are_reported():
    with mock.enable("torch"):
        import torch

        assert not hasattr(torch, "no_such_thing")
        with pytest.raises(AttributeError, match=r"(?s)torch.nn.*'Lineer'.*fix: *torch.nn.Linear"):
            _ = torch.nn.Lineer
        with pytest.raises(ModuleNotFoundError, match=r"(?s)'torch.fft'.*docs/missing.md.*flow.fft.rfft"):
            import torch.fft
        with pytest.raises(ImportError):
            from torch.nn import Nothing  # noqa: F401
        for part in sorted(HOUSE):
            assert not hasattr(torch, part), part
        for part in sorted(HOUSE - {"core"}):
            with pytest.raises(ImportError):
                importlib.import_module(f"torch.{part}")
    assert mock.wanted()["torch.fft"] == 3 and mock.wanted()["torch.no_such_thing"] == 1


@pytest.mark.parametrize(
    "path", "distributions linalg onnx nn nn.init utils.data amp distributed utils.tensorboard".split())
def test_imports_of_a_file_are_not_listed_as_names(path):
    """The error does not list imports of the file (`expected: one of Any, CallError, IO, ...` of
    torch.onnx).
    """
    with mock.enable("torch"):
        module = importlib.import_module(f"torch.{path}")
        told = {*module._suggestions()}
        with pytest.raises(AttributeError) as e:
            module.no_such_name  # noqa: B018
    assert (told
            and not told & set(
                "annotations Any Callable ArgumentError CallError REGISTRY os math".split())), told
    assert told >= {n.rpartition(".")[2] for n in public_names() if n.rpartition(".")[0] == path}
    assert len(told) > 24 or set(e.value.expected.removeprefix("one of ").split(", ")) == told


def public_names() -> list[str]:
    return (Path(__file__).parents[1] / "public_names.txt").read_text(encoding="utf-8").split()


def test_invalid_calls_are_refused():
    with pytest.raises(ArgumentError, match="(?s)no package that flowedu stands in for.*'numpy'"):
        mock.enable("torch", "numpy")
    assert not mock.is_enabled("torch")
    with pytest.raises(ArgumentError, match="nothing is enabled"):
        mock.disable()


def test_switches_without_effect_warn_and_return_their_value():
    with mock.enable():
        import oneflow
        import torch

        f = print
        assert torch.jit.script(f) is f and torch.jit.trace(f, 1) is f and torch.compile(f) is f
        assert (torch.jit.ignore(f) is f and torch.jit.ignore(drop=True)(f) is f
                and not torch.jit.is_scripting())
        assert torch.compile(mode="default")(f) is f
        torch.backends.cudnn.benchmark = True
        oneflow.boxing.nccl.set_fusion_threshold_mbytes(16)
        assert (not torch.backends.mps.is_available()
                and torch.accelerator.is_available() == flow.cuda.is_available())
        assert (torch.is_tensor(torch.ones(2)) and not torch.is_tensor(1)
                and torch.numel(torch.ones(2, 3)) == 6)
        assert oneflow.compatible.single_client.nn.Linear is flow.nn.Linear


@given(st.integers(1, 4), st.one_of(st.integers(), st.lists(st.integers(), max_size=4)))
def test_scalars_that_expand_to_tuples(n, x):
    from flowedu.mock.insides import tuples

    assert tuples._ntuple(n)(x) == (tuple(x) if isinstance(x, list) else (x,) * n)
    assert tuples._pair(3) == (3, 3) and tuples._pair.__name__ == "_pair"
    if isinstance(x, list):
        assert tuples._reverse_repeat_tuple(x, n) == tuple(v for v in x[::-1] for _ in range(n))
        assert tuples._list_with_default([None, 7, None][:max(1, len(x))], [1, 2, *x]) == [
            d if v is None else v for v, d in zip([None, 7, None][:max(1, len(x))],
                                                  [1, 2, *x][-max(1, min(3, len(x))):])]


def test_variables_of_old_programs():
    x = flow.tensor([1.0, 2.0])
    v = flow.autograd.Variable(x, requires_grad=True)
    assert (isinstance(v, flow.autograd.Variable) and isinstance(v, flow.Tensor) and v.requires_grad
            and v.is_leaf)
    (v * v).sum().backward()
    assert v.grad.tolist() == [2.0, 4.0] and x.grad is None and not flow.autograd.Variable(v).requires_grad
    x[0] = 5.0
    assert v.detach().tolist() == [5.0, 2.0] and not isinstance(1, flow.autograd.Variable)
    with pytest.raises(ArgumentError, match="(?s)Variable: not a tensor.*int"):
        flow.autograd.Variable(1)


def run_program(tmp_path, program, *words, args=()):
    (tmp_path / "helper.py").write_text("VALUE = 5\n")
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
    return subprocess.run([sys.executable, "-m", "flowedu.mock", *words, "program.py", *args], cwd=tmp_path,
                          encoding="utf-8",
                          capture_output=True, timeout=HANGS)


def test_a_program_runs_unchanged(tmp_path):
    done = run_program(tmp_path, """
        import sys
        import helper
        import torch.nn as nn
        from torch import optim
        from torch.utils.data import DataLoader, TensorDataset
        import torch
        if __name__ == "__main__":
            data = TensorDataset(torch.randn(8, 3), torch.randint(0, 2, (8,)))
            model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
            optimizer = optim.SGD(model.parameters(), lr=0.1)
            for x, y in DataLoader(data, batch_size=4):
                optimizer.zero_grad()
                nn.CrossEntropyLoss()(model(x), y).backward()
                optimizer.step()
            hasattr(torch, "fft")
            print(sys.argv, helper.VALUE, "oneflow" in sys.modules)
            sys.exit(3)
    """, "--as", "torch", args=["--lr", "1"])
    assert (done.returncode, done.stdout) == (3, "['program.py', '--lr', '1'] 5 False\n"), done.stderr
    assert done.stderr == "flowedu.mock: asked for, and not there: torch.fft\n"
    silent = run_program(tmp_path, "import torch\nassert torch.__version__.startswith('2')\n")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    none = subprocess.run([sys.executable, "-m", "flowedu.mock", "none.py"], cwd=tmp_path,
                          encoding="utf-8", capture_output=True,
                          timeout=HANGS)
    assert none.returncode == 2 and "cannot read none.py" in none.stderr


def test_the_mock_is_not_imported_by_default():
    code = ("import sys, flowedu; print(any(m.startswith('flowedu.mock') for m in sys.modules)); "
            "flowedu.mock.enable")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True,
                          encoding="utf-8").stdout == "False\n"
