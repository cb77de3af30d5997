"""Saving and loading of a module's state: state_dict and load_state_dict."""
from __future__ import annotations

import itertools
import types
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import copied
from flowedu.core.eager.dispatch import unrecorded
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.errors import CallError, CheckpointError
from flowedu.nn.methods.hooks import RemovableHandle
from flowedu.tensor.global_tensors.functions import from_logical
from flowedu.tensor.interop.protocols import from_dlpack

# True if state_dict() returns the parameters themselves
defaults = types.SimpleNamespace(live=True)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Result of load_state_dict: (missing_keys, unexpected_keys)."""

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _as_tensor(value) -> Tensor | None:
    """Convert a tensor, an array, a PyTorch tensor, or a list to a tensor; return None for anything else."""
    if isinstance(value, Tensor):
        return value
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            return from_dlpack(value.detach() if hasattr(value, "detach") else value)
        array = np.asarray(value)
        return copied(array) if array.dtype.kind in "biuf" else None
    except (TypeError, ValueError, RuntimeError, BufferError):
        return None


class Stateful:
    """Methods of Module for state_dict.

    A module with another kind of state overrides `_save_to_state_dict` and `_load_from_state_dict`, or
    get_extra_state and set_extra_state.
    """

    _version: int = 1
    _state_hooks: Any = None                             # {kind: {id: function}}

    # Attributes of Module.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # ---- saving
    def state_dict(self, destination: dict | None = None, prefix: str = "",
                   keep_vars: bool | None = None) -> dict:
        """Return {name: tensor} of the parameters and persistent buffers of the module and its descendants.

        Args:
            destination: dict to fill; default: a new one.
            prefix: prefix of the names.
            keep_vars: True returns the live parameters and buffers, which change during training; False
                returns detached tensors that share their memory. Default: True, as in OneFlow; False under
                flowedu.mock, as in PyTorch.

        Returns:
            The dict; its attribute `_metadata` contains the versions of the modules.
        """
        keep_vars = defaults.live if keep_vars is None else keep_vars
        if destination is None:
            created: Any = OrderedDict()
            created._metadata = OrderedDict()
            destination = created
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        for hook in self._hooks_of("state_pre"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooks_of("state"):
            got = hook(self, destination, prefix, {"version": self._version})
            destination = destination if got is None else got
        return destination

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Write the module's own tensors into `destination`."""
        for name, t in self._own_tensors():
            destination[prefix + name] = t if keep_vars else t.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[f"{prefix}_extra_state"] = self.get_extra_state()

    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]:
        skipped = self._non_persistent_buffers_set
        for name, t in itertools.chain(self._parameters.items(), self._buffers.items()):
            if t is not None and name not in skipped:
                yield name, t

    def get_extra_state(self):
        """Return non-tensor state for state_dict; modules with such state override this and set_extra_state.
        """
        raise CallError("get_extra_state: this module has none",
                        expected="a module that defines get_extra_state",
                        got=type(self).__name__, fix="define get_extra_state in the class")

    def set_extra_state(self, state) -> None:
        """Restore the result of get_extra_state."""
        raise CallError("set_extra_state: this module has none",
                        expected="a module that defines set_extra_state",
                        got=type(self).__name__, fix="define set_extra_state in the class")

    # ---- loading
    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False):
        """Copy tensors into the parameters and buffers with these names.

        Args:
            state_dict: {name: tensor}.
            strict: raise for missing and unexpected names.
            assign: use the memory and dtype of the given tensors instead of copying them.

        Returns:
            (missing_keys, unexpected_keys), printed as `<All keys matched successfully>` if both are empty.

        Raises:
            CheckpointError (a RuntimeError): names (if strict) or shapes that do not fit; it lists all of
            them.
        """
        if not isinstance(state_dict, Mapping):
            raise CallError("load_state_dict: state_dict is not a dictionary",
                            expected="a dict of names and tensors",
                            got=type(state_dict).__name__,
                            fix="pass model.state_dict(), or what flow.load gave")
        metadata = getattr(state_dict, "_metadata", {})
        state = dict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module, prefix):
            facts = {"assign": assign, **metadata.get(prefix[:-1], {})}
            module._load_from_state_dict(state, prefix, facts, strict, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")
            found = _IncompatibleKeys(missing, unexpected)
            for hook in module._hooks_of("load"):
                hook(module, found)

        with unrecorded():
            load(self, "")
        if strict:
            for words, keys in (("Missing", missing), ("Unexpected", unexpected)):
                if keys:
                    errors.append(f"{words} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys) + ".")
        if errors:
            name = type(self).__name__
            raise CheckpointError(f"Error(s) in loading state_dict for {name}:\n\t" + "\n\t".join(errors),
                                  expected=f"the names and shapes of this {name}.state_dict()",
                                  got=f"{len(errors)} difference(s), listed above",
                                  fix="load the state of a module made with the same arguments"
                                  + (", or pass strict=False to load what fits" if missing or unexpected
                                     else ""))
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool,
                              missing_keys: list, unexpected_keys: list, error_msgs: list) -> None:
        """Take this module's own tensors out of `state_dict`; append to the three lists what does not fit."""
        for hook in self._hooks_of("load_pre"):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for name, own in list(self._own_tensors()):
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            given = _as_tensor(state_dict[key])
            if given is None:
                error_msgs.append(f"While copying the parameter named {key}, expected flowedu.Tensor or "
                                  f"Tensor-like object from checkpoint but received {type(state_dict[key])}")
            elif tuple(given.shape) != tuple(own.shape):
                error_msgs.append(f"size mismatch for {key}: copying a param with shape {tuple(given.shape)} "
                                  f"from checkpoint, the shape in current model is {tuple(own.shape)}.")
            elif local_metadata.get("assign"):
                own.data = given.detach()
            elif own is not given:
                global_layout = own.global_layout if given.global_layout is None else None
                own.copy_(given if global_layout is None else from_logical(given, global_layout))
        extra = f"{prefix}_extra_state"
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            else:
                missing_keys.append(extra)
        elif extra in state_dict:
            unexpected_keys.append(extra)
        stored_buffers = self._buffers.keys() - self._non_persistent_buffers_set
        known = self._modules.keys() | self._parameters.keys() | stored_buffers
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                first, _, rest = key[len(prefix):].partition(".")
                if first not in known or rest and first not in self._modules:
                    unexpected_keys.append(key)

    # ---- hooks
    def _hooks_of(self, kind: str) -> list[Callable]:
        return (list(self._state_hooks[kind].values()) if self._state_hooks and kind in self._state_hooks
                else [])

    def _add_state_hook(self, kind: str, hook: Callable) -> RemovableHandle:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", {})
        table = self._state_hooks.setdefault(kind, OrderedDict())
        handle = RemovableHandle(table)
        table[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that is called as hook(module, prefix, keep_vars) before state_dict."""
        return self._add_state_hook("state_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that may change the result of state_dict.

        It is called as hook(module, state_dict, prefix, local_metadata).
        """
        return self._add_state_hook("state", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that is called as hook(module, incompatible_keys) after loading.

        The hook may change both lists in place.
        """
        return self._add_state_hook("load", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that may rename keys before loading.

        It is called as hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors).
        """
        return self._add_state_hook("load_pre", lambda *args: hook(self, *args))
