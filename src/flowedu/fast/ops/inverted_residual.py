"""inverted_residual: MobileNetV2's inference block (Sandler et al., 2018), three convolutions with norms.

    x (n, H, W, c) -> 1x1, norm, clip -> depthwise, norm, clip -> 1x1, norm, clip -> y (n, X, Y, o)

The first convolution may also have a window larger than 1x1, as at the start of the network. With `residual`,
x is added. One kernel computes a few rows at a time, so that the expanded image never leaves the cache. The
pass of the same name inserts the op.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning
from flowedu.core.ops.reverse import vjp
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.fast.ops import conv_last
from flowedu.fast.ops.conv_last import conv2d_last_norm
from flowedu.ops import conv
from flowedu.ops.kept import KEPT
from flowedu.ops.types import Gradients, Packed, Shape

register("inverted_residual")

INPUTS = ("x", *(f"{name}{i}" for i in (1, 2, 3) for name in ("w", "gamma", "beta", "mean", "var")))
ATTRS = ("strides", "pads", "epsilon", "low", "high", "last_low", "last_high", "residual", "first_strides",
         "first_pads")
ONE, NONE = (1, 1), (0, 0, 0, 0)


def _of_record(f: Callable[[dict], Any], *more: str) -> Callable:
    """Convert `f`, a function of one dict, to a record function of all inputs, attributes, and `more`."""
    names = (*more, *INPUTS, *ATTRS)

    def ask(*values: Any) -> Any:
        return f(dict(zip(names, values)))

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    ask.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of a function
    return ask


def _chain(call: Callable, inputs: list, of: dict) -> Any:
    """Apply call(image, w, gamma, beta, mean, var, **attributes) three times; add x if `residual`."""
    y, rest = inputs[0], inputs[1:]
    clipped = dict(epsilon=of["epsilon"], low=of["low"], high=of["high"])
    plain = dict(strides=ONE, pads=NONE, dilations=ONE, groups=1)
    first = dict(strides=of["first_strides"], pads=of["first_pads"], dilations=ONE, groups=1)
    depthwise = dict(strides=of["strides"], pads=of["pads"], dilations=ONE, groups=rest[5].shape[0])
    last = dict(epsilon=of["epsilon"], low=of["last_low"], high=of["last_high"])
    for i, attrs in enumerate((first | clipped, depthwise | clipped, plain | last)):
        y = call(y, *rest[5 * i:5 * i + 5], **attrs)
    return y + inputs[0] if of["residual"] else y


def _infer(of: dict[str, Any]) -> Shape:
    def call(x: Spec, w: Spec, *norms: Spec, **attrs: Any) -> Spec:
        window = (attrs["strides"], attrs["pads"], attrs["dilations"], attrs["groups"])
        conv_last.check_norm("inverted_residual", x, w, norms, window)
        return Spec(conv_last._shape(x, w, *window[:3]), x.dtype)

    for name, last in (("w1", of["w1"].shape[2:]), ("w2", of["w2"].shape[2:]), ("w3", ONE)):
        w = of[name].shape
        if len(w) != 4 or w[2:] != last or name == "w2" and w[1] != 1:
            raise ShapeError(f"inverted_residual: {name} does not fit", got=f"{name} {w}",
                             expected="w1 (e, c, P, Q), w2 (e, 1, K, L), w3 (o, e, 1, 1)",
                             fix="three calls of conv2d")
    x, y = of["x"], _chain(call, [of[n] for n in INPUTS], of | {"residual": False})
    if of["residual"] and x.shape != y.shape:
        raise ShapeError("inverted_residual: x cannot be added", expected=f"x {y.shape}", got=f"x {x.shape}",
                         fix="residual=False")
    return y.shape


def _grad(of: dict[str, Any]) -> Gradients:
    xs = tuple(of[n] for n in INPUTS)
    return dict(zip(INPUTS, vjp(lambda *xs: _chain(conv2d_last_norm, list(xs), of), xs, (of["dy"],))))


def _axes(residual: bool) -> str:
    """Return the axes: only n can be split, because of the windows and norms. With `residual`, c equals o."""
    middle = "ECKL,E,E,E,E,EDMN,E,E,E,E"
    return (f"nHWO,{middle.replace('C', 'O')},OEPQ,O,O,O,O->nHWO" if residual
            else f"nHWC,{middle},oEPQ,o,o,o,o->nXYo")


def _example(hw: Shape, c: int, e: int, **first: Shape) -> dict[str, Any]:
    """Return arguments for the laws. tests/fast/test_inverted_residual.py tests the other cases.

    x is added, because the result would otherwise be linear in gamma3 and beta3. No element is clipped,
    because a difference quotient across a limit is not the derivative.
    """
    window = (3, 3) if first else (1, 1)
    return dict(shapes=[(2, *hw, c), (e, c, *window), *[(e,)] * 4, (e, 1, 3, 3), *[(e,)] * 4, (c, e, 1, 1),
                        *[(c,)] * 4],
                pads=(1, 1, 1, 1), epsilon=1e-3, low=-1e4, high=1e4, last_low=-1e6, last_high=1e6,
                residual=True, **first)


def _pack(of: dict[str, Any]) -> Packed:
    x, size = of["x"].shape[1:3], of["w1"].shape[2:]
    expanded = conv._out_hw(x, size, of["first_strides"], of["first_pads"], ONE)
    ints = (*conv._pack(expanded, of["w2"].shape[2:], of["strides"], of["pads"], ONE, 1)[0], of["residual"],
            *conv._pack(x, size, of["first_strides"], of["first_pads"], ONE, 1)[0], *expanded)
    return ints, tuple(of[n] for n in ATTRS[2:7])


inverted_residual = define(
    f"inverted_residual({', '.join(INPUTS)}, *, strides=(1, 1), pads=(0, 0, 0, 0), epsilon, low, high, "
    f"last_low, last_high, residual=False, first_strides=(1, 1), first_pads=(0, 0, 0, 0)) -> y",
    Meaning(_axes, _of_record(lambda of: _chain(conv_last._norm_ref, [of[n] for n in INPUTS], of)),
            shape=_of_record(_infer)),
    Kernel("inverted_residual", pack=_of_record(_pack)),
    Laws([_example((5, 5), 5, 7), _example((5, 7), 6, 19), _example((5, 7), 3, 8, first_pads=(1, 1, 1, 1))],
         domain={n: "positive" if n.startswith("var") else "few" for n in INPUTS}),
    grad=_of_record(_grad, "dy"),
    doc="Expand, filter each channel, project, each with a norm and clipped [+ x].")

KEPT[inverted_residual] = tuple(range(1, len(INPUTS)))
