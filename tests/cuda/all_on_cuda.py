"""Context manager `everything_on_cuda(modules)`: places the tensors that tests create, and those of the given
test modules, on cuda; numpy() copies them to the CPU.
"""
from contextlib import contextmanager

import pytest

import flowedu as flow
from flowedu import nn
from flowedu.core.eager.tensor import Tensor

MAKERS = ("tensor", "from_numpy", "ones", "zeros", "arange", "full", "randn", "rand", "empty", "eye", "tril",
          "linspace", "randint")


def move_to_cuda(t):
    plain = isinstance(t, Tensor) and t.is_eager and t.global_layout is None
    return t.detach().cuda().requires_grad_(t.requires_grad) if plain and not t._device else t


def maker(f):
    def make(*args, **options):
        made = f(*args, **options)
        return made if "device" in options else move_to_cuda(made)

    return make


def born_there(init, cls):
    def new(self, *args, **options):
        init(self, *args, **options)
        if type(self) is cls:
            self.cuda()
    return new


def copy_from_device(numpy):
    return lambda t: numpy(
        t.detach().cpu()).copy() if t.is_eager and t.global_layout is None and t._device else numpy(t)


@contextmanager
def everything_on_cuda(modules):
    with pytest.MonkeyPatch.context() as patch:
        for name in MAKERS:
            patch.setattr(flow, name, maker(getattr(flow, name)))
        for cls in {c for c in vars(nn).values() if isinstance(c, type) and issubclass(c, nn.Module)}:
            if cls is not nn.Module and "__init__" in vars(cls):
                patch.setattr(cls, "__init__", born_there(cls.__init__, cls))
        for module in modules:
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    patch.setattr(module, name, move_to_cuda(value))
        patch.setattr(Tensor, "numpy", copy_from_device(Tensor.numpy))
        yield
