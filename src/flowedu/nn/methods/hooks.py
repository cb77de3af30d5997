"""Hooks of modules: functions called before and after forward and backward, and handles to remove them."""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flowedu.core import extensions
from flowedu.core.values import thread_state as ambient
from flowedu.errors import CallError
from flowedu.nn.backward_hooks import Watch

_ids = itertools.count()


class RemovableHandle:
    """Handle of a registered hook: `handle.remove()` unregisters it, as does leaving `with handle:`."""

    def __init__(self, table: dict, *others: dict):
        # Loaded tables have old ids.
        self.id, self.tables = next(i for i in _ids if i not in table), (table, *others)

    def remove(self) -> None:
        for table in self.tables:
            table.pop(self.id, None)
        ambient.changes += 1

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class Hooks:
    """Hooks of one module: {id: function}, in the order of their registration."""

    def __init__(self):
        self.pre, self.post = OrderedDict(), OrderedDict()
        self.backward_pre, self.backward = OrderedDict(), OrderedDict()
        self.with_kwargs: dict[int, bool] = {}
        self.always: dict[int, bool] = {}

    @property
    def any(self) -> bool:
        """True if any hook is registered."""
        return bool(self.pre or self.post or self.backward_pre or self.backward)

    def add(self, kind: str, hook: Callable, prepend: bool = False, with_kwargs: bool = False,
            always: bool = False) -> RemovableHandle:
        table = getattr(self, kind)
        handle = RemovableHandle(table, self.with_kwargs, self.always)
        table[handle.id] = hook
        ambient.changes += 1
        if with_kwargs:
            self.with_kwargs[handle.id] = True
        if always:
            self.always[handle.id] = True
        if prepend:
            table.move_to_end(handle.id, last=False)
        return handle

    def call(self, module, args: tuple, kwargs: dict):
        """Run forward with the hooks before and after it."""
        for key, hook in list(self.pre.items()):
            if key in self.with_kwargs:
                got = hook(module, args, kwargs)
                if got is not None:
                    args, kwargs = _pair(got)
            else:
                got = hook(module, args)
                if got is not None:
                    args = got if isinstance(got, tuple) else (got,)
        watch = None
        if self.backward or self.backward_pre:
            watch = Watch(module, self)
            args = watch.inputs(args)
        done: set[int] = set()
        try:
            try:
                out = module.forward(*args, **kwargs)
            except TypeError as e:
                if extensions.raise_misfit:
                    extensions.raise_misfit(module, args, kwargs, e)
                raise
            for key, hook in list(self.post.items()):
                done.add(key)
                got = hook(module, args, kwargs, out) if key in self.with_kwargs else hook(module, args, out)
                out = out if got is None else got
        except BaseException:
            for key, hook in list(self.post.items()):
                if key in self.always and key not in done:
                    hook(module, args, kwargs, None) if key in self.with_kwargs else hook(module, args, None)
            raise
        return out if watch is None else watch.outputs(out)


def _pair(got):
    if not (isinstance(got, tuple) and len(got) == 2):
        raise CallError("forward pre-hook must return None or a tuple of (new_args, new_kwargs)",
                        expected="None, or (args, kwargs)", got=repr(got)[:80], fix="return args, kwargs")
    return got


class Hooked:
    """Methods of Module that register hooks."""

    _hooks: Any                                          # Hooks, or None before the first registration

    def _hook(self, kind: str, hook: Callable, **options) -> RemovableHandle:
        if not callable(hook):
            raise CallError("a hook is not callable", expected="a function", got=repr(hook)[:60],
                            fix="pass the function itself, without ()")
        if self._hooks is None:
            object.__setattr__(self, "_hooks", Hooks())
        return self._hooks.add(kind, hook, **options)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
                                  ) -> RemovableHandle:
        """Register a hook that is called as hook(module, args) before forward.

        Args:
            hook: function; a result other than None replaces args.
            prepend: call it before the hooks that are already registered.
            with_kwargs: call hook(module, args, kwargs), which may return (args, kwargs).

        Returns:
            A handle whose `remove` method unregisters the hook.
        """
        return self._hook("pre", hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, args, output) after forward.

        Args:
            hook: function; a result other than None replaces the output.
            prepend: call it before the hooks that are already registered.
            with_kwargs: call hook(module, args, kwargs, output).
            always_call: also call it if forward raises, with output None.

        Returns:
            A handle whose `remove` method unregisters the hook.
        """
        return self._hook("post", hook, prepend=prepend, with_kwargs=with_kwargs, always=always_call)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, grad_output) before the backward pass of the module.

        Args:
            hook: function; a result other than None replaces grad_output.
            prepend: call it before the hooks that are already registered.

        Returns:
            A handle whose `remove` method unregisters the hook.
        """
        return self._hook("backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, grad_input, grad_output) in the backward pass.

        Args:
            hook: function of two tuples; a result other than None replaces grad_input.
            prepend: call it before the hooks that are already registered.

        Returns:
            A handle whose `remove` method unregisters the hook.
        """
        return self._hook("backward", hook, prepend=prepend)

    register_backward_hook = register_full_backward_hook
