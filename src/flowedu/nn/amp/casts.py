"""autocast: a block in which lists of ops determine the dtype of each op (lists.py).

autocast applies to eager ops, and to graphs and jobs that are being built. The backward pass of a cast
converts the gradient back.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import TensorBase, is_grad_enabled, set_amp
from flowedu.core.ops import view
from flowedu.core.ops.call import OpBase
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import HALVES
from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.errors import ArgumentError, DeviceError, DTypeError
from flowedu.nn.amp.lists import AS_FIRST, MIXED, NARROW, WIDE
from flowedu.tensor.devices import device

register_fields(amp=None)             # f(op, inputs): the inputs in the dtypes that the op computes in

KINDS = {"cpu": dt.bfloat16, "cuda": dt.float16}                 # default dtype of each device
LISTS: dict[Any, Any] = {op: listed for listed in (NARROW, WIDE, AS_FIRST, MIXED) for op in listed}
FLOATS = (*HALVES, dt.float32)                                   # float64 is not cast


class _Casts:
    """Casts of one block, stored in `thread_state.amp`; a parameter is cast once per block and write."""

    def __init__(self, dtype: dt.dtype, keeps: bool):
        self.dtype, self.keeps = dtype, keeps
        self.kept: dict[int, tuple[Any, int, bool, Any]] = {}

    def __call__(self, op: OpBase, inputs: tuple) -> tuple:
        """Cast the inputs of an op call; the usual case, no cast, is checked first."""
        kind = LISTS.get(op)
        if kind is MIXED:
            return inputs
        if kind is NARROW:
            half = self.dtype
            for x in inputs:
                if x.dtype is not half:
                    return tuple([self._narrowed(x) if x.dtype in FLOATS and x.dtype is not half else x
                                  for x in inputs])
            return inputs
        if kind is WIDE:
            return tuple([self._cast(x, dt.float32) if x.dtype in HALVES else x for x in inputs])
        if len(inputs) < 2:
            return inputs
        first = inputs[0].dtype
        for x in inputs:
            if x.dtype is not first:
                break
        else:
            return inputs
        if kind is AS_FIRST:
            return tuple([self._cast(x, first) if x.dtype in FLOATS else x for x in inputs])
        kinds = {x.dtype for x in inputs}
        if dt.float32 in kinds and not kinds.isdisjoint(HALVES):
            return tuple([self._cast(x, dt.float32) if x.dtype in HALVES else x for x in inputs])
        return inputs

    def _narrowed(self, x: Any) -> Any:
        if not self.keeps or not x.requires_grad or not x.is_leaf:
            return self._cast(x, self.dtype)
        known, records = self.kept.get(id(x)), is_grad_enabled()
        if known is None or known[1:3] != (x._version, records):
            known = self.kept[id(x)] = (x, x._version, records, self._cast(x, self.dtype))
        return known[3]

    @staticmethod
    def _cast(x: TensorBase, dtype: dt.dtype) -> TensorBase:
        return x if x.dtype is dtype else view.cast.call((x,), (dtype,))


class autocast:  # noqa: N801
    """Context manager or decorator for automatic mixed precision.

    Products compute in a 16-bit dtype, and ops that need a wider range in float32 (lists.py).

    Args:
        device_type: "cpu" or "cuda", the device of the tensors.
        dtype: float16, bfloat16, or float32 (no casts); default: bfloat16 on a CPU, float16 on a GPU.
        enabled: False makes no casts inside the block, even within an enabled block.
        cache_enabled: cast each parameter once in the outermost block.

    Raises:
        ArgumentError: device_type is neither "cpu" nor "cuda".
        DeviceError: there is no GPU.
        DTypeError: dtype is not float16, bfloat16, or float32.

    Note:
        Blocks nest. The backward pass computes in the dtypes of the forward pass, inside or outside of a
        block. PyTorch 2 and OneFlow 0.9 have the same interface.
    """

    def __init__(self, device_type: str = "cpu", dtype: dt.dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None):
        kind = str(device_type).partition(":")[0]
        if kind not in KINDS:
            raise ArgumentError("autocast: there is no such kind of device",
                                expected=" or ".join(map(repr, KINDS)),
                                got=repr(device_type), fix='autocast("cpu")')
        if enabled and kind == "cuda" and not device.gpus():
            raise DeviceError("autocast: there is no GPU", expected='a GPU, or "cpu"', got=repr(device_type),
                              fix='autocast("cpu"), or enabled=flow.cuda.is_available()')
        self.device, self.fast_dtype = kind, get_autocast_dtype(kind) if dtype is None else dtype
        if enabled and self.fast_dtype not in HALVES and self.fast_dtype is not dt.float32:
            raise DTypeError("autocast: it cannot compute in this type",
                             expected="flow.bfloat16 or flow.float16",
                             got=repr(dtype), fix=f'autocast("{kind}", dtype=flow.bfloat16)')
        self.enabled = bool(enabled) and self.fast_dtype in HALVES
        self.cache_enabled = cache_enabled is None or bool(cache_enabled)
        self._outer: list[tuple[Any, bool]] = []

    def __enter__(self) -> autocast:
        outer, casts = thread_state.amp, None
        if self.enabled:
            same = outer is not None and outer.dtype is self.fast_dtype and outer.keeps is self.cache_enabled
            casts = outer if same else _Casts(self.fast_dtype, self.cache_enabled)
        thread_state.amp = casts
        self._outer.append((outer, set_amp(casts is not None)))
        return self

    def __exit__(self, *error: Any) -> None:
        thread_state.amp, on = self._outer.pop()
        set_amp(on)

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def inside(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self.enabled, self.cache_enabled):
                return func(*args, **kwargs)
        return inside


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return True inside an enabled autocast block.

    Args:
        device_type: "cpu" or "cuda"; default: any device.
    """
    return thread_state.amp is not None


def get_autocast_dtype(device_type: str = "cpu") -> dt.dtype:
    """Return the dtype of the enclosing autocast block, or the default of the device.

    Args:
        device_type: "cpu" or "cuda".
    """
    inside = thread_state.amp
    return inside.dtype if inside is not None else KINDS.get(str(device_type).partition(":")[0], dt.float16)
