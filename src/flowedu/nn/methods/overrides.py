"""Methods of modules that programs override because PyTorch calls them.

The library calls most of these methods itself. This file covers the others when a subclass is defined: it
makes Python call the override, or it raises an error, so that no override is ignored.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.errors.ignored import refuse_ignored


def _call_by_method(self, *args: Any, **kwargs: Any) -> Any:
    return self._call_impl(*args, **kwargs)


def _set_by_registration(self, name: str, value: object) -> None:
    """Assign an attribute; parameters and buffers go through the overridden register methods."""
    own = self.__dict__
    if isinstance(value, Parameter) or value is None and name in own.get("_parameters", ()):
        Module.__setattr__(self, name, value)             # removes other attributes of this name
        del own["_parameters"][name]
        self.register_parameter(name, value)
    elif isinstance(value, Tensor) and name in own.get("_buffers", ()):
        self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
    else:
        Module.__setattr__(self, name, value)


# {special method: (its replacement, the methods that it calls)}
_SPECIAL: dict[str, tuple[Any, tuple[str, ...]]] = {
    "__call__": (_call_by_method, ("_call_impl",)),
    "__setattr__": (_set_by_registration, ("register_parameter", "register_buffer"))}


class Overridable:
    """Methods of Module that prepare its subclasses."""

    # Methods that only PyTorch calls; subclasses add theirs.
    _uncalled = ("_get_backward_hooks", "_get_backward_pre_hooks", "_maybe_warn_non_full_backward_hook")

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)  # type: ignore[arg-type]


def prepare_subclass(cls: Any, **options: Any) -> None:
    """Prepare a new subclass of Module: its overrides take effect, or UnsupportedError is raised."""
    super(Module, cls).__init_subclass__(**options)
    refuse_ignored(cls, "override forward")
    for special, (replacement, names) in _SPECIAL.items():
        overridden = [n for n in names if getattr(cls, n, None) is not getattr(Module, n, None)]
        present = getattr(cls, special)
        if not overridden or present is replacement:
            continue
        if present is not getattr(Module, special):
            refuse_ignored(cls, f"do not define {special} in the same class", overridden)
        else:
            setattr(cls, special, replacement)
