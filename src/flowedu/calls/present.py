"""Give the functions of a public module, and the methods of its classes, their skin (ops/function.pyx); and let a name
that a module does not have be answered with the nearest one.

Inside the package functions are called without it: each module imports from where a function is defined.
"""
from __future__ import annotations

import importlib
import types

from flowedu import later
from flowedu.calls import explain
from flowedu.ops.function import PublicFunction, register_explainer

_COMPILED = type(register_explainer)                     # a function of a Cython module
_AS_IT_IS = {"forward", "build"}                         # what users define, and modules call
PUBLIC = """flowedu nn nn.functional nn.init nn.utils nn.utils.rnn linalg math layers losses optim optim.lr_scheduler
    optimizer random regularizers autograd cuda utils vision models deprecated unittest job.env job.scope job.distribute
    advanced"""                                          # and what is imported later (later.py)
_skins: dict[tuple[object, str], PublicFunction] = {}
_classes: set[type] = set()


def present_all() -> None:
    """Present the public modules that `import flowedu` imports."""
    for name in PUBLIC.split():
        present(importlib.import_module("flowedu" if name == "flowedu" else f"flowedu.{name}"))


def present(value, name: str | None = None):
    """A public function with its skin; a class or a module of ours, changed in place. name: what users call it."""
    if not _is_ours(value):
        return value
    if isinstance(value, (types.FunctionType, _COMPILED)):
        key = value, name or value.__name__
        if key not in _skins:
            _skins[key] = PublicFunction(value, None, name)
        return _skins[key]
    if isinstance(value, types.ModuleType):
        own = vars(value)
        for name, x in list(own.items()):
            if name[0] != "_" and not isinstance(x, types.ModuleType):
                own[name] = present(x, name)
        if "__getattr__" not in own:
            own["__getattr__"] = later.later(value.__name__, {})[0]
    elif isinstance(value, type):
        for kind in value.__mro__:
            if _is_ours(kind) and kind not in _classes and not issubclass(kind, BaseException):
                _present_class(kind)
    return value


def _is_ours(value) -> bool:
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.startswith("flowedu")


def _present_class(cls: type) -> None:
    """Give the methods of one class their skin."""
    _classes.add(cls)
    for name, method in list(vars(cls).items()):
        if isinstance(method, types.FunctionType) and (name == "__init__" or name[0] != "_" and name not in _AS_IT_IS):
            setattr(cls, name, PublicFunction(method, cls, name))


register_explainer(explain.explained)
later.register_presenter(present)
