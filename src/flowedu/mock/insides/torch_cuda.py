"""cuda.FloatTensor and the like: as those of torch, on the GPU. (`_initialized`: one generator serves all devices.)"""
from __future__ import annotations

from flowedu import Tensor
from flowedu.mock.insides import torch_tensors

_initialized = False


class _Kind(type):
    """Metaclass of tensor types: a call creates a Tensor on the GPU; instances are GPU tensors of its dtype."""

    def __call__(cls, *args, device=None) -> Tensor:
        return cls._make(*args, device="cuda" if device is None else device)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.is_cuda


for _name in torch_tensors.NAMES:
    _own = getattr(torch_tensors, _name)
    globals()[_name] = _Kind(_name, (), {"_make": staticmethod(_own._make), "dtype": _own.dtype, "__doc__": _own.__doc__,
                                         "__module__": "torch.cuda"})
__all__ = [*torch_tensors.NAMES]
