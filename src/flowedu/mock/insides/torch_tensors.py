"""FloatTensor and the like, which in PyTorch are classes: FloatTensor([1, 2]), isinstance(x, FloatTensor)."""
from __future__ import annotations

import flowedu as flow
from flowedu import Tensor
from flowedu.errors import ArgumentError


class _Kind(type):
    """Metaclass of tensor types: a call creates a Tensor; instances are CPU tensors of its dtype."""

    def __call__(cls, *args, device=None) -> Tensor:
        return cls._make(*args, device=device)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.device.type == "cpu"


NAMES = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "IntTensor", "LongTensor", "ShortTensor",
         "CharTensor", "ByteTensor", "BoolTensor")
for _name in NAMES:
    _make = getattr(flow, _name)
    globals()[_name] = _Kind(_name, (), {"_make": staticmethod(_make), "dtype": _make.dtype, "__doc__": _make.__doc__,
                                         "__module__": __name__})


def typename(obj) -> str:
    """The class of an object with its module; of a tensor what type() gives."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def set_default_tensor_type(t) -> None:
    """set_default_dtype(t.dtype): t is FloatTensor or DoubleTensor, or its name."""
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    last = name.rpartition(".")[2]
    if last not in ("FloatTensor", "DoubleTensor") or ".cuda." in name:
        raise ArgumentError("set_default_tensor_type: no default of this kind", expected="FloatTensor or DoubleTensor",
                            got=name, fix='torch.set_default_dtype(torch.float64); tensors are made with device="cuda"')
    flow.set_default_dtype(getattr(flow, last).dtype)


def get_default_device():
    """device("cpu")."""
    return flow.device("cpu")


def set_default_device(device) -> None:
    """Nothing for the CPU, which is the default. ArgumentError for another."""
    if device is not None and flow.device(device).type != "cpu":
        raise ArgumentError("set_default_device: tensors are made on the CPU where nothing is said", expected='"cpu"',
                            got=repr(device), fix='model.to("cuda"), and device="cuda" where tensors are made')
