"""In-place writes: x.add_(y), x += y, x[i] = y.

A write has three effects. First, the new values are stored in x's memory, where every alias and view reads
them. Second, the memory's version is incremented, so that the backward pass detects that a saved value was
overwritten. Third, x gets the history of the new values. If x is a view, the history of its base becomes
"the base with the new values in this region". Every view of the base then rebuilds its history at its next
use (core/eager/link.pxi).

Tensors inside nn.Graph.build, and global tensors on several devices, have no memory of their own. After a
write into such a tensor x, the tensor, its base, and its views represent the new values.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import (
    TensorBase,
    connect,
    copy_into,
    is_grad_enabled,
    make_custom_node,
    scalar_tensor,
    set_history,
    slots,
    take_value,
    tape_position,
)
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import concat, elementwise, view
from flowedu.core.ops.call import OpBase, current_interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.promote import operate
from flowedu.core.values.dtype import FLOATS, int8
from flowedu.core.values.spec import broadcast
from flowedu.errors import ArgumentError, DeviceError, DTypeError, LazyTensorError, ShapeError
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.devices.conversion import move_to_place, use_device_of
from flowedu.tensor.devices.device import device_of
from flowedu.tensor.dtypes.promotion import can_cast
from flowedu.tensor.gradients.backward import forget_grad, keep_grad
from flowedu.tensor.inplace.tape_nodes import Overwritten, WroteIntoView
from flowedu.tensor.inplace.writing import Update, check_writable, keep_old_values, try_into, view_steps

_CAST, _EXPAND, _IDENTITY = view.cast, view.expand, view.identity


def write_into(x: Tensor, z: Tensor, what: str = "copy_", since: int | None = None) -> Tensor:
    """Write the values of z, broadcast to x's shape and cast to its dtype, into x, and return x.

    Args:
        what: name of the in-place op, for messages.
        since: `tape_position()` before z was computed from x, or None if z was not computed from x. Calls
            that were recorded since then keep a copy of the values of x that they saved.

    Raises:
        GradientError: x is a leaf that requires a gradient, or a view of such a leaf, or several elements of
            x share one memory location.
        ShapeError: z does not broadcast to the shape of x.
    """
    top = current_interpreter()
    check_writable(x, what)
    if z.shape != x.shape and not _fits(z.shape, x.shape):
        raise ShapeError(f"{what}: The expanded size of the tensor ({tuple(x.shape)}) must match the "
                         f"existing size ({tuple(z.shape)})",
                         expected=f"a shape that broadcasts to {tuple(x.shape)}", got=str(tuple(z.shape)))
    if z.dtype is not x.dtype:
        z = _CAST.call((z,), (x.dtype,))
    if z._device != x._device:
        z = move_to_place(z, x._device)
    here, there = x.global_layout, z.global_layout
    if here is not there and top is None and not z.uniform and None in (here, there):
        raise ArgumentError(f"{what}: {'a local' if there is None else 'a global'} tensor cannot be "
                            f"written into {'a local' if here is None else 'a global'} one",
                            expected="two local or two global tensors",
                            got="one of each", fix="value.to_global(x.placement, flow.sbp.broadcast)"
                            if there is None else
                            "value.to_local(), or make x global")
    if top is not None or here is not None and not (x.has_memory and (there is here or there is None)):
        _write_lazy(x, z, top, what)
        return x
    recorded = (is_grad_enabled() and (x.requires_grad or z.requires_grad or x._base is not None
                                       and x._base.requires_grad))
    if recorded and z.shape != x.shape:
        z = _EXPAND.call((z,), (x._sizes(),))
    steps = view_steps(x) if recorded and x.link is not None else None
    if recorded and since is not None:
        keep_old_values(z, since, x)
    copy_into(x, z)
    if recorded:
        rewrite_history(x, z, steps, since is None)
    return x


def _fits(shape: tuple, target: tuple) -> bool:
    try:
        return broadcast(shape, target) == tuple(target)
    except ShapeError:
        return False


def rewrite_history(x: Tensor, z: Tensor, steps: Any, independent: bool = False) -> None:
    """Give x the history of z, after the values of z were written into x.

    If x is a view, the history of its base also changes.

    Args:
        steps: result of `view_steps(x)`, the ops that make x from its base; only used if x is a view.
        independent: True if z was not computed from x.
    """
    if z.node is None and z.requires_grad:
        z = _IDENTITY.call((z,), ())                 # a leaf has an edge but no node
    base = x._base
    kept = [t for t in (x, base) if t is not None and t.rare is not None and t.rare.retains]
    for t in kept:
        forget_grad(t)
    if base is None:
        if z.node is not None and not (independent and x.requires_grad):
            set_history(x, z.node, z.out_index)
        else:
            inputs = (x, z) if z.requires_grad else (x,)
            set_history(x, make_custom_node(Overwritten("copy_slices", inputs), inputs))
        x.epoch += 1
    elif not base._can_track:
        return
    else:
        inputs = (base, z) if z.requires_grad else (base,)
        set_history(base, make_custom_node(WroteIntoView(inputs, steps, type(z)), inputs))
        base.epoch += 1
        x.refresh_view()
    for t in kept:
        keep_grad(t)


# ---- without memory: inside nn.Graph.build, and global tensors on several devices
def _write_lazy(x: Tensor, z: Tensor, top: Any, what: str) -> None:
    x.refresh_view()
    if z.shape != x.shape:
        z = _EXPAND.call((z,), (x._sizes(),))
    detached = False
    while x.link is not None:
        detached |= x.link.plain
        if x.link.parent is None:
            raise LazyTensorError(f"{what}: this view is too many views away from its base",
                                  fix="clone() the view first",
                                  expected="fewer views of views", got="a view in an nn.Graph")
        parent: Any = x.link.parent
        z = _put_back(parent, x.link.op, x.link.attrs, z, what)
        x = parent
    if x.global_layout is not None and top is None:
        slots.write_parts(x, z, is_grad_enabled() and not detached and (z.requires_grad or x.requires_grad))
        return
    z = z if z.is_lazy else _IDENTITY.call((z,), ())
    if hasattr(getattr(top, "placing", None), "take_value"):
        top.placing.take_value(x, z)
    if not x.is_eager:
        take_value(x, z)
    elif hasattr(top, "write"):
        top.write(x, z)
        x.epoch += 1
    else:
        raise LazyTensorError(f"{what}: this interpreter cannot write into an eager tensor",
                              got="an eager tensor",
                              expected="a lazy one", fix="write outside, or return the new value")


def _put_back(parent: Tensor, op: OpBase, attrs: tuple, z: Tensor, what: str) -> Tensor:
    """Return the parent with z in the region that a view op selects."""
    if op is _IDENTITY:
        return z
    if op is view.reshape:
        return op.call((z,), (parent._sizes(),))
    if op is view.transpose:
        perm = attrs[op.attr_index["perm"]]
        return op.call((z,), (tuple(sorted(range(len(perm)), key=perm.__getitem__)),))
    if op is concat.slice:
        return _with_slice(parent, z, *attrs)
    raise LazyTensorError(f"{what}: a view made by {op.name} cannot be written in place in nn.Graph.build",
                          expected="a tensor, or a view by slicing, reshape or transpose",
                          got=f"a view by {op.name}",
                          fix="compute a new tensor: flow.where(mask, new, old), say")


def _with_slice(parent: Tensor, z: Tensor, start: tuple, stop: tuple, step: tuple) -> Tensor:
    """Return `parent` with z in [start:stop:step].

    Inside the slice the result is z padded with zeros, outside it is the parent.
    """
    shape = parent._sizes()
    if all((a, b, s) == (0, n, 1) for a, b, s, n in zip(start, stop, step, shape)):
        return z
    attrs = dict(shape=shape, start=start, stop=stop, step=step)
    there = concat.slice_grad(z, **attrs)
    ones = view.constant(shape=z._sizes(), value=1, dtype=z.dtype)
    mask = concat.slice_grad(ones, **attrs)
    return elementwise.where(_CAST.call((mask,), (int8,)), there, parent)


# ---- computing and writing
def compute_into(x: Tensor, f: Callable, args: tuple, kwargs: dict, what: str,
                 lenient: bool = False) -> Tensor:
    """Compute f(x, *args) and write the result into x, for the in-place method named `what`.

    With `lenient`, the op that computed x keeps a copy of x if it saved x for the backward pass.
    """
    check_writable(x, what)
    since = x.node.seq - 1 if lenient and x.node is not None else tape_position()
    if x._device:
        with use_device_of(x):
            z = f(x, *args, **kwargs)
    else:
        z = f(x, *args, **kwargs)
    if not isinstance(z, Tensor):
        raise DTypeError(f"{what}: the function did not return a tensor", expected="a tensor",
                         got=type(z).__name__)
    check_result(x, z, what)
    return write_into(x, z, what, since)


def check_result(x: Tensor, z: Tensor, what: str) -> None:
    """Raise an error if the result z has another shape or device than x, or a dtype that x cannot store."""
    if z.shape != x.shape:
        raise ShapeError(f"{what}: Can not expand origin shape {tuple(x.shape)} to {tuple(z.shape)} in an "
                         f"inplace operation", expected=f"a result of shape {tuple(x.shape)}",
                         got=str(tuple(z.shape)),
                         fix=f"x = x.{what.rstrip('_')}(...)" if what.endswith("_")
                         else "x = x + y instead of x += y")
    if z._device != x._device:
        here, there = device_of(x._device), device_of(z._device)
        raise DeviceError(f"{what}: Expected all tensors to be on the same device",
                          expected="operands on one device",
                          got=f"{here} and a result on {there}", fix=f'x = x.to("{there}") first')
    if not can_cast(z.dtype, x.dtype):
        raise DTypeError(f"{what}: result type {z.dtype!r} can't be cast to the desired output type "
                         f"{x.dtype!r}",
                         expected=f"a result that fits {x.dtype!r}", got=repr(z.dtype),
                         fix="convert x: x.float(), say")


def arithmetic(x: Tensor, op: Op, other: Tensor | Number) -> Tensor:
    """Compute `x op= other` for + - * /, in x's memory if that is safe."""
    what = op.name + "_"
    check_writable(x, what)
    if current_interpreter() is None and x.dtype in FLOATS:
        y = other
        if not isinstance(y, TensorBase) and isinstance(y, (int, float)):
            y = scalar_tensor(y, x.dtype)
        if isinstance(y, TensorBase) and y.dtype is x.dtype and (x.rare is None or not x.rare.retains) \
                and try_into(op, (x, y), (), x):
            return x
    since = tape_position()
    z = operate(op, x, other)
    if z is NotImplemented:
        return z
    check_result(x, z, what)
    return write_into(x, z, what, since)


connect(write=Update(arithmetic))
