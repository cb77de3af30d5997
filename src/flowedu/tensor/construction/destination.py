"""Destination of a new tensor: a device, or a placement with an SBP signature.

`flow.utils.global_view.global_mode` sets it for all tensors created inside the block.
"""
from __future__ import annotations

import sys
from typing import Any, NamedTuple

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.tensor.arguments.types import Device, Placement, Sbp
from flowedu.tensor.devices.device import place_of
from flowedu.tensor.global_tensors.functions import from_logical, of_kind, shared_generator, spread_out


class Spread(NamedTuple):
    """Layout of new tensors in a global mode."""

    placement: object
    sbp: object


register_fields(global_mode=None)            # a Spread inside an enabled global mode
CREATION = tuple(f"flowedu.tensor.construction.{name}" for name in ("creation", "random", "destination"))


def is_made_by_user() -> bool:
    """Return True if a user's program called the creation function, not another part of flowedu."""
    frame: Any = sys._getframe(1)
    name = CREATION[0]
    while frame is not None and (name in CREATION or name.startswith("flowedu.mock")):
        frame, name = frame.f_back, frame.f_globals.get("__name__", "")
    return not name.startswith("flowedu.")


def finished(t: Tensor, device: Device | None = None, requires_grad: bool = False,
             placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Move a new tensor to its destination and set requires_grad.

    This is the last step of every creation function.
    """
    mode = thread_state.global_mode
    placing: Any = getattr(current_interpreter(), "placing", None)            # of nn.Graph.build
    made = getattr(placing, "made", None)
    if made is not None and not t.is_lazy:
        made.append(t)
    if placement is not None or sbp is not None:
        t = spread_out(t, placement, sbp, device)
    elif mode is not None and t.global_layout is None:
        p = mode.placement
        if device is not None:
            p = of_kind(p, "cuda" if place_of(device) else "cpu")
        t = spread_out(t, p, mode.sbp)
    elif device is not None:
        t = t.to(device)
    # Only flowedu's own constants join global tensors.
    if t.global_layout is None and is_made_by_user():
        t.uniform = False
        if t.is_lazy and made is not None:
            placing.local.add(current_interpreter().value_of(t))
    if requires_grad:
        t.requires_grad = True
    return t


def shared(placement: Placement | None, generator: Any) -> Any:
    """Return the generator of a random function; for global tensors its state is the same on every rank."""
    mode = thread_state.global_mode
    placement = mode.placement if placement is None and mode is not None else placement
    return generator if placement is None else shared_generator(placement, generator)


def spread_as(t: Tensor, x: object) -> Tensor:
    """Return t as a global tensor on the devices of x if x is global, else t itself.

    Every rank must have computed the same t from x.
    """
    layout = getattr(x, "global_layout", None)
    return t if layout is None or t.global_layout is not None or t.is_lazy else from_logical(t, layout.whole)


def where(input: Tensor, device: Device | None = None, placement: Placement | None = None,
          sbp: Sbp | None = None) -> dict:
    """Return keyword arguments that make a creation function place its tensor where `input` is.

    Arguments that are passed take precedence. If `device` is passed, the tensor is local. If only `placement`
    or only `sbp` is passed, the other one is that of the input.
    """
    layout = getattr(input, "global_layout", None)
    if device is None and layout is not None:
        placement = layout.placement if placement is None else placement
        sbp = layout.sbp if sbp is None else sbp
    if placement is None and sbp is None:
        return {"device": home(input, device)}
    return {"device": device, "placement": placement, "sbp": sbp}


def home(input: Tensor, device: Device | None = None) -> Device | None:
    """Return the device of a new tensor: `device` if it is passed, else the device of `input`.

    The result is None for the CPU, and for a global input, whose placement determines the devices.
    """
    return device if device is not None or not getattr(input, "_device", 0) else input.device
