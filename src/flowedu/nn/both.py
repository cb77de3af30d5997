"""Names that both generations have: `nn.MSELoss(x, y)` is the function of OneFlow 0.4, `nn.MSELoss()` the module."""
from __future__ import annotations

import inspect
from collections.abc import Callable

from flowedu.blob.blob import BlobDef
from flowedu.ops.core import TensorBase


def also_function(cls: type, function: Callable, values: int = 1) -> None:
    """Let cls(...) call `function` when its first `values` arguments are blobs or tensors, and make a module otherwise."""
    names = tuple(inspect.signature(function).parameters)[:values]

    def __new__(kind, *args, **kwargs):
        if kind is cls:
            given = (*args[:values], *(kwargs[n] for n in names[len(args):] if n in kwargs))
            if len(given) == values and all(isinstance(x, (BlobDef, TensorBase)) for x in given):
                return function(*args, **kwargs)
        return object.__new__(kind)

    cls.__new__ = __new__
    cls.__doc__ = f"{cls.__doc__}\n\n    Called with blobs or tensors it is the function of OneFlow 0.4: {cls.__name__}" \
                  f"{inspect.signature(function)}."


def join_generations() -> None:
    """The names of OneFlow 0.4's functions that are modules too."""
    from flowedu.nn import losses, maps, modules, norms
    for name in ("BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "L1Loss", "MSELoss"):
        also_function(getattr(modules, name), getattr(losses, name), 2)
    for name in ("MarginRankingLoss", "TripletMarginLoss"):
        also_function(getattr(modules, name), getattr(losses, name), 3)
    for home, names in ((maps, ("PixelShuffle",)), (norms, ("GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
                                                            "InstanceNorm3d"))):
        for name in names:
            also_function(getattr(modules, name), getattr(home, name))


join_generations()
