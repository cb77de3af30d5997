"""flow.autograd.graph: hooks for the tensors saved for the backward pass."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.eager.arrays import tensor_alias
from flowedu.core.eager.dispatch import connect
from flowedu.core.eager.tensor import Tensor
from flowedu.errors import GradientError
from flowedu.errors.once import inert
from flowedu.tensor.devices import device as gpus


class _Packed:
    """Saved tensor in the form that pack_hook returned."""

    __slots__ = ("packed", "unpack_hook")

    def __init__(self, packed, unpack_hook: Callable):
        self.packed, self.unpack_hook = packed, unpack_hook

    def unpack(self) -> Tensor:
        t = self.unpack_hook(self.packed)
        if not isinstance(t, Tensor):
            raise GradientError("saved_tensors_hooks: unpack_hook returned something else than a tensor",
                                expected="a tensor with the saved values", got=type(t).__name__)
        return t


class saved_tensors_hooks:
    """Context manager in which tensors for the backward pass are stored as `pack_hook(tensor)`.

    `unpack_hook` restores them. For example, hooks can store activations on disk or in fewer bits.

    Args:
        pack_hook: function of the tensor, called when it is saved.
        unpack_hook: function of the result, called when the backward pass needs the tensor.
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self.old: list = []

    def __enter__(self):
        def pack(t):
            old = connect(pack=None)                     # the hook's own ops are not packed
            try:
                return _Packed(self.pack_hook(tensor_alias(t)), self.unpack_hook)
            finally:
                connect(**old)

        self.old.append(connect(pack=pack))
        return self

    def __exit__(self, *exc) -> None:
        connect(**self.old.pop())


class save_on_cpu(saved_tensors_hooks):
    """Context manager in which tensors for the backward pass are stored in main memory.

    The backward pass copies them back to their GPU.

    Args:
        pin_memory: use pinned memory.
        device_type: accepted for compatibility.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        inert("save_on_cpu(pin_memory)", bool(pin_memory) and not gpus.gpus(), False,
              "memory is pinned for a GPU only")

        def pack(t: Tensor):
            if not t._device or t.global_layout is not None:
                return t
            return t.device, t.cpu().pin_memory() if pin_memory else t.cpu()
        super().__init__(pack, lambda kept: kept if isinstance(kept, Tensor) else kept[1].to(kept[0]))


__all__ = ["save_on_cpu", "saved_tensors_hooks"]
