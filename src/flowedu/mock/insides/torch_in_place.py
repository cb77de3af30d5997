"""In-place methods as functions: torch.sigmoid_(x) is x.sigmoid_()."""
from __future__ import annotations

from collections.abc import Callable

from flowedu import Tensor
from flowedu.tensor.dtypes.promotion import check_tensor

NAMES = """abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
    atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_
    fill_ fix_ floor_ frac_ index_put_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_
    rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_
    xlogy_""".split()


def _function(name: str) -> Callable:
    def f(input: Tensor, *args, **kwargs) -> Tensor:
        check_tensor(name, input)
        return getattr(input, name)(*args, **kwargs)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"input.{name}(...)"
    return f


globals().update({name: _function(name) for name in NAMES})
__all__ = [*NAMES]
