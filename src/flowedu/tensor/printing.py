"""Printing of tensors, with PyTorch's rules for the values, and always with the dtype, as in OneFlow.

A lazy tensor has no values: `tensor(..., is_lazy='True', size=(1, 4), dtype=flowedu.float32)`.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import ArgumentError


@dataclass
class Options:
    """Options of set_printoptions."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = Options()
INDENT = len("tensor(")
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(precision: int | None = None, threshold: float | None = None,
                     edgeitems: int | None = None, linewidth: int | None = None, profile: str | None = None,
                     sci_mode: bool | None = None) -> None:
    """Set the form in which tensors are printed; None keeps an option, except for sci_mode.

    Args:
        precision: digits after the point; initially 4.
        threshold: number of elements above which only the edges of a tensor are printed; initially 1000.
        edgeitems: number of elements at each edge; initially 3.
        linewidth: characters per line; initially 80.
        profile: "default", "short", or "full", which set the options above; default: None.
        sci_mode: True prints numbers as 1.0000e+05, and False never does. None (default) does so if the range
            of the values requires it.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError("set_printoptions: unknown profile", expected='"default", "short" or "full"',
                                got=repr(profile), fix="profile=\"default\"")
        OPTIONS.precision, OPTIONS.threshold, OPTIONS.edgeitems, OPTIONS.linewidth = _PROFILES[profile]
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth)):
        if value is not None:
            setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


class Formatter:
    """Common width and style of all values of a tensor."""

    def __init__(self, a: np.ndarray) -> None:
        self.real, self.whole = a.dtype.kind == "f", True
        self.science, self.width = False, 1
        if not self.real:
            self.width = max([len(str(v)) for v in a.reshape(-1).tolist()], default=1)
            return
        x = a.reshape(-1).astype(np.float64)
        x = x[np.isfinite(x) & (x != 0)]
        if not x.size:
            return
        low, high = float(np.abs(x).min()), float(np.abs(x).max())
        self.whole = bool((x == np.ceil(x)).all())
        large = high / low > 1000.0 or high > 1.0e8
        if OPTIONS.sci_mode is None:
            self.science = large or (low < 1.0e-4 and not self.whole)
        else:
            self.science = OPTIONS.sci_mode
        style = ".0f" if self.whole else f".{OPTIONS.precision}f"
        if self.science:
            style = f".{OPTIONS.precision}e"
        self.width = max(len(format(v, style)) for v in x.tolist()) + (self.whole and not self.science)

    def __call__(self, v: Any) -> str:
        if not self.real:
            text = str(v)
        elif self.science:
            text = f"{v:.{OPTIONS.precision}e}"
        elif self.whole:
            text = f"{v:.0f}" + ("." if math.isfinite(v) else "")
        else:
            text = f"{v:.{OPTIONS.precision}f}"
        return text.rjust(self.width)


def _edges(a: np.ndarray) -> np.ndarray:
    """Return the elements that will be shown."""
    e = OPTIONS.edgeitems
    for axis, n in enumerate(a.shape):
        if n > 2 * e:
            a = np.concatenate([a.take(range(e), axis), a.take(range(n - e, n), axis)], axis)
    return a


def _body(a: np.ndarray, indent: int, short: bool, form: Formatter) -> str:
    if a.ndim == 0:
        return form(a.item())
    e, cut = OPTIONS.edgeitems, short and a.shape[0] > 2 * OPTIONS.edgeitems
    if a.ndim == 1:
        per_line = max(1, (OPTIONS.linewidth - indent) // (form.width + 2))
        items = [form(v) for v in a.tolist()] if not cut else \
            [form(v) for v in a[:e].tolist()] + [" ..."] + [form(v) for v in a[len(a) - e:].tolist()]
        lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = a if not cut else [*a[:e], None, *a[len(a) - e:]]
    parts = ["..." if r is None else _body(r, indent + 1, short, form) for r in rows]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def body(a: np.ndarray, indent: int = INDENT) -> str:
    """Return the text of an array's values; lines after the first are indented by `indent` characters."""
    if not a.size:
        return "[]"
    short = a.size > OPTIONS.threshold
    return _body(a, indent, short, Formatter(_edges(a) if short else a))


def _with_suffixes(text: str, suffixes: list[str]) -> str:
    """Append the suffixes to the text, each on the last line if it fits, else on a new one."""
    width = len(text) - text.rfind("\n") + 1
    for s in suffixes:
        if width + len(s) + 2 > OPTIONS.linewidth:
            text, width = f"{text},\n{' ' * INDENT}{s}", INDENT + len(s)
        else:
            text, width = f"{text}, {s}", width + len(s) + 2
    return text + ")"


def grad_text(t: Tensor) -> list[str]:
    """Return a list with `grad_fn=<mul_backward>` or `requires_grad=True`, or an empty list."""
    node = t.grad_fn
    if node is not None:
        name = node.name() if callable(getattr(node, "name", None)) else None
        return [f"grad_fn=<{name}>" if name else f"grad_fn={node!r}"]
    return ["requires_grad=True"] if t.requires_grad else []


def host_array(t: Tensor) -> np.ndarray:
    """Return the values to print as an array."""
    a = t.float() if t.dtype.name == "bfloat16" else t
    return (a.detach() if a.requires_grad else a)._on_host().numpy()


def tensor_repr(self: Tensor) -> str:
    """Return repr(tensor)."""
    suffixes, lazy = [], getattr(self, "is_lazy", False)
    global_layout = getattr(self, "global_layout", None)
    device = getattr(self, "device", None) if global_layout is None else None
    if global_layout is not None:
        suffixes += [f"placement={global_layout.placement!r}", f"sbp={global_layout.sbp!r}"]
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        suffixes.append(f"device='{device}'")
    if lazy:
        suffixes.append("is_lazy='True'")
        text = "tensor(..."
    else:
        text = "tensor(" + body(host_array(self))
    if lazy or (not self._numel and self.ndim != 1):
        suffixes.append(f"size={tuple(self.shape)}")
    return _with_suffixes(text, [*suffixes, f"dtype={self.dtype!r}", *grad_text(self)])


def tensor_format(self: Tensor, spec: str) -> str:
    """Format the number of a 0-dim tensor, as in f"{t:.2f}"; a tensor with axes accepts no format."""
    number = not self.ndim and not getattr(self, "is_lazy", False)
    return format(self.item(), spec) if number else object.__format__(self, spec)
