"""nn.init's deprecated names, without the trailing `_` of in-place functions. They warn like PyTorch's."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from flowedu.nn import init


def _warns(new: Callable) -> Callable:
    name = new.__name__

    @functools.wraps(new)
    def fill(*args, **kwargs):
        warnings.warn(f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning,
                      stacklevel=2)
        return new(*args, **kwargs)

    fill.__name__ = fill.__qualname__ = name[:-1]
    return fill


NAMES = ("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse",
         "uniform", "xavier_normal", "xavier_uniform")
globals().update({name: _warns(getattr(init, f"{name}_")) for name in NAMES if hasattr(init, f"{name}_")})
