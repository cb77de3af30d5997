"""Anomaly mode: reports the forward line of a backward pass that fails or produces NaN."""
from __future__ import annotations

import warnings

from flowedu.core.eager.dispatch import connect
from flowedu.core.ops.view import cast
from flowedu.errors import GradientError, user_line

_on = _check_nan = False


def is_anomaly_enabled() -> bool:
    """Return True if anomaly mode is enabled."""
    return _on


def _watch(node, douts, grads, error) -> None:
    where = node.line or "a line outside the anomaly mode's block"
    if error is not None:
        error.add_note(f"  forward:  {node.name()} was recorded at {where}")
        return
    if not _check_nan:
        return
    for i, (g, e) in enumerate(zip(grads, node.edges)):
        if g is not None and e is not None and g.dtype.is_floating_point:
            a = g.detach()
            a = a if a.dtype.numpy is not None else cast(a, dtype=douts[0].dtype)
            if (a.peek() != a.peek()).any():
                raise GradientError(f"Function '{node.name()}' returned nan values in its {i}th output",
                                    at=where, got=f"a gradient of shape {tuple(g.shape)} with NaN",
                                    fix="look at the values at that line: a log or a division by 0, say")


def set_anomaly(mode: bool, check_nan: bool = True) -> None:
    global _on, _check_nan
    _on, _check_nan = bool(mode), check_nan
    connect(line=user_line if _on else None, watch=_watch if _on else None)


class detect_anomaly:
    """Context manager for anomaly mode, in which every recorded call stores its source line.

    If the backward pass fails or produces NaN, the error reports the line of the forward call. The mode is
    slow.

    Args:
        check_nan: also raise if a gradient contains NaN.
    """

    def __init__(self, check_nan: bool = True):
        self.before, self.check_nan = (_on, _check_nan), check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should "
                      "only be enabled for debugging.", stacklevel=2)

    def __enter__(self):
        set_anomaly(True, self.check_nan)
        return self

    def __exit__(self, *exc) -> None:
        set_anomaly(*self.before)


class set_detect_anomaly:
    """Switch for anomaly mode that takes effect at once.

    As a context manager, it restores the previous mode at the end of the block.

    Args:
        mode: True enables it.
        check_nan: also raise if a gradient contains NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = (_on, _check_nan)
        set_anomaly(mode, check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        set_anomaly(*self.before)


__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]
