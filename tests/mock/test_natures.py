"""Under torch's name, PyTorch's classes are classes, its modules are modules, and its callables are
callable.
"""
import importlib
import inspect
import types

import pytest

from flowedu import mock

pytestmark = pytest.mark.torch

PATHS = ["torch", "torch.Tensor", *("torch." + path for path in (
    "accelerator amp amp.autocast_mode amp.grad_scaler autograd autograd.anomaly_mode autograd.function "
    "autograd.functional autograd.grad_mode autograd.graph autograd.profiler autograd.variable backends "
    "backends.cuda backends.cudnn backends.mkl backends.mkldnn backends.mps backends.openmp "
    "backends.opt_einsum compiler cpu cpu.amp cuda cuda.amp distributed functional hub jit linalg mps "
    "multiprocessing nn nn.attention nn.common_types nn.functional nn.init nn.modules nn.modules.activation "
    "nn.modules.batchnorm nn.modules.container nn.modules.conv nn.modules.loss nn.modules.module "
    "nn.modules.normalization nn.modules.pooling nn.modules.rnn nn.modules.transformer nn.modules.utils "
    "nn.parallel nn.parallel.distributed nn.parameter nn.utils nn.utils.clip_grad nn.utils.rnn onnx optim "
    "optim.lr_scheduler optim.optimizer profiler random serialization special testing types utils "
    "utils.checkpoint utils.data utils.data.dataloader utils.data.dataset utils.data.distributed "
    "utils.data.sampler version xpu").split())]

# reasons for names of another kind
OTHER = {
    "torch._sources": "the mock's own",
    "torch.autograd.variable": "a module, whose Variable programs import; PyTorch's function of that name "
    "only raises", "torch.backends.mkl.verbose": "used as `with`, and there is nothing to tell",
    "torch.compiler.config": "settings may be set, and change nothing",
    "torch.cuda.graph": "used as `with`, never as a type",
    "torch.cuda.StreamContext": "used as `with`, never as a type",
    "torch.distributed.debug": "PyTorch's own module, on nobody's page",
    "torch.jit.Attribute": "nothing is compiled: the value itself",
    "torch.jit.Final": "written as Final[int] only",
    "torch.jit.annotations": "PyTorch's own module, on nobody's page",
    "torch.nn.common_types._tensor_list_t": "for annotations",
    "torch.random.fork_rng": "used as `with`, or as a decorator",
    "torch.types.FileLike": "for annotations",
}


def nature(x) -> str:
    return ("class" if inspect.isclass(x) else "module" if isinstance(x, types.ModuleType) else
            "callable" if callable(x) else "value")


def of_torch(x) -> bool:
    home = getattr(x, "__name__" if isinstance(x, types.ModuleType) else "__module__", None)
    return home is None or home.startswith("torch")


def natures(path: str, names=None) -> dict[str, str]:
    owner = (importlib.import_module("torch").Tensor if path == "torch.Tensor"
             else importlib.import_module(path))
    if names is None:
        names = [n for n in dir(owner) if not n.startswith("__") and of_torch(getattr(owner, n, None))]
    return {n: nature(getattr(owner, n)) for n in names if hasattr(owner, n)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", PATHS)
def test_names_have_the_same_kind_as_in_pytorch(path):
    pytest.importorskip("torch")
    theirs = natures(path)
    before = mock.wanted()
    with mock.enable("torch"):
        ours = natures(path, theirs)
    mock.MISSING.clear()
    mock.MISSING.update(before)
    assert ours or path.startswith("torch.backends")  # some of these are objects that hide their contents
    differ = {f"{path}.{n}: {theirs[n]} there, {ours[n]} here" for n in ours if ours[n] != theirs[n]}
    assert not {d for d in differ if d.partition(":")[0] not in OTHER}


def test_exceptions_are_in_checked_paths():
    assert {name.rpartition(".")[0] for name in OTHER} <= set(PATHS)
