"""FloatTensor and other tensor types, as classes: FloatTensor([1, 2]), isinstance(x, FloatTensor)."""
from __future__ import annotations

from collections.abc import Callable

import flowedu as flow
from flowedu import Tensor
from flowedu.errors import ArgumentError


class _TensorType(type):
    """Metaclass of tensor types: a call creates a Tensor; isinstance compares the dtype and the device."""

    _make: Callable[..., Tensor]
    _device: str
    dtype: flow.dtype

    def __call__(cls, *args, device=None) -> Tensor:
        return cls._make(*args, device=cls._device if device is None else device)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.device.type == cls._device


NAMES = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "IntTensor", "LongTensor",
         "ShortTensor", "CharTensor", "ByteTensor", "BoolTensor")


def _make_types(module: str, device: str) -> dict[str, type]:
    """Return {name: tensor type} for the tensors of a device."""
    types: dict[str, type] = {}
    for name in NAMES:
        make = getattr(flow, name)
        types[name] = _TensorType(name, (), {"_make": staticmethod(make), "_device": device,
                                             "dtype": make.dtype,
                                             "__doc__": make.__doc__, "__module__": module})
    return types


globals().update(_make_types(__name__, "cpu"))


def typename(obj) -> str:
    """Return the module and class of an object, or x.type() of a tensor."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def set_default_tensor_type(t) -> None:
    """Call set_default_dtype(t.dtype). t: FloatTensor, DoubleTensor, or its name."""
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    last = name.rpartition(".")[2]
    if last not in ("FloatTensor", "DoubleTensor") or ".cuda." in name:
        raise ArgumentError("set_default_tensor_type: no default of this kind",
                            expected="FloatTensor or DoubleTensor",
                            got=name, fix='torch.set_default_dtype(torch.float64); tensors are made with '
                            'device="cuda"')
    flow.set_default_dtype(getattr(flow, last).dtype)


def get_default_device():
    """Return device("cpu")."""
    return flow.device("cpu")


def set_default_device(device) -> None:
    """Accept the CPU, the only default device. Raise ArgumentError for others."""
    if device is not None and flow.device(device).type != "cpu":
        raise ArgumentError("set_default_device: tensors are made on the CPU where nothing is said",
                            expected='"cpu"',
                            got=repr(device),
                            fix='model.to("cuda"), and device="cuda" where tensors are made')
