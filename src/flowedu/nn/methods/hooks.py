"""Hooks of modules: functions that are called before and after forward and backward, and the handles that remove them."""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable

from flowedu.core.shelves import shelf

_ids = itertools.count()


class RemovableHandle:
    """What registering a hook gives: `handle.remove()` takes it away, as does leaving `with handle:`."""

    def __init__(self, table: dict, *others: dict):
        self.id, self.tables = next(i for i in _ids if i not in table), (table, *others)     # a loaded table has old ids

    def remove(self) -> None:
        for table in self.tables:
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class Hooks:
    """The hooks of one module: {id: function}, in the order of their registration."""

    def __init__(self):
        self.pre, self.post = OrderedDict(), OrderedDict()
        self.backward_pre, self.backward = OrderedDict(), OrderedDict()
        self.with_kwargs: dict[int, bool] = {}
        self.always: dict[int, bool] = {}

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.pre or self.post or self.backward_pre or self.backward)

    def add(self, kind: str, hook: Callable, prepend: bool = False, with_kwargs: bool = False,
            always: bool = False) -> RemovableHandle:
        table = getattr(self, kind)
        handle = RemovableHandle(table, self.with_kwargs, self.always)
        table[handle.id] = hook
        if with_kwargs:
            self.with_kwargs[handle.id] = True
        if always:
            self.always[handle.id] = True
        if prepend:
            table.move_to_end(handle.id, last=False)
        return handle


def call(module, args: tuple, kwargs: dict):
    """forward with the module's hooks around it."""
    hooks = module._hooks
    for key, hook in list(hooks.pre.items()):
        if key in hooks.with_kwargs:
            got = hook(module, args, kwargs)
            if got is not None:
                args, kwargs = _pair(got)
        else:
            got = hook(module, args)
            if got is not None:
                args = got if isinstance(got, tuple) else (got,)
    watch = None
    if hooks.backward or hooks.backward_pre:
        watch = shelf("backward hooks")(module, hooks)
        args = watch.inputs(args)
    done: set[int] = set()
    try:
        try:
            out = module.forward(*args, **kwargs)
        except TypeError as e:
            say_misfit(module, args, kwargs, e)
            raise
        for key, hook in list(hooks.post.items()):
            done.add(key)
            got = hook(module, args, kwargs, out) if key in hooks.with_kwargs else hook(module, args, out)
            out = out if got is None else got
    except BaseException:
        for key, hook in list(hooks.post.items()):
            if key in hooks.always and key not in done:
                hook(module, args, kwargs, None) if key in hooks.with_kwargs else hook(module, args, None)
        raise
    return out if watch is None else watch.outputs(out)


def say_misfit(module, args: tuple, kwargs: dict, error: TypeError) -> None:
    """Raise an error that says why a call does not fit module.forward, where `error`, met in the caller, was that."""
    if error.__traceback__.tb_next is None:              # no line of forward ran
        explain = shelf("why a call does not fit", lambda *call: None)
        better = explain(f"{type(module).__name__}.forward", module.forward, args, kwargs)
        if better is not None:
            raise better


def _pair(got):
    from flowedu.errors import CallError
    if not (isinstance(got, tuple) and len(got) == 2):
        raise CallError("forward pre-hook must return None or a tuple of (new_args, new_kwargs)",
                        expected="None, or (args, kwargs)", got=repr(got)[:80], fix="return args, kwargs")
    return got
