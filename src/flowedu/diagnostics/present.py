"""Give the functions of a public module, and the methods of its classes, their skin (diagnostics/function.pyx); and let a
name that a module does not have be answered with the nearest one.

Inside the package functions are called without it: each module imports from where a function is defined.
"""
from __future__ import annotations

import importlib
import types
from collections.abc import Callable

from flowedu.aliases import alias
from flowedu.diagnostics import explain, habits, lazy_imports
from flowedu.diagnostics.function import PublicFunction, register_explainer, register_translator

_COMPILED = type(register_explainer)                     # a function of a Cython module
_AS_IT_IS = {"forward", "build"}                         # what users define, and modules call
PUBLIC = """flowedu nn nn.functional nn.init nn.utils nn.utils.rnn linalg math layers losses optim optim.lr_scheduler
    optimizer random regularizers autograd cuda utils vision models deprecated unittest advanced
    oneflow04.job.env oneflow04.job.scope distribute"""      # and what is imported later (diagnostics/lazy_imports.py)
_skins: dict[tuple[object, str, bool], PublicFunction] = {}
_classes: set[type] = set()
_choice: Callable = lambda path, value: None             # oneflow04/names.py has the one that is used


def register_choices(f: Callable) -> None:
    """f(path, value): the choice between `value`, found at a public path such as "nn.MSELoss", and what else the name
    means; None: nothing else."""
    global _choice
    _choice = f


def present_all() -> None:
    """Present the public modules that `import flowedu` imports."""
    for name in PUBLIC.split():
        present(importlib.import_module("flowedu" if name == "flowedu" else f"flowedu.{name}"))


def present(value, name: str | None = None, path: str = ""):
    """A public function with its skin; a class or a module of ours, changed in place. name: what users call it; path: where
    below flowedu they find it."""
    if not _is_ours(value):
        return value
    if isinstance(value, (types.FunctionType, _COMPILED)):
        choice = _choice(path, value)
        key = value, name or value.__name__, choice is not None
        if key not in _skins:
            _skins[key] = PublicFunction(value, None, name, choice)
        return _skins[key]
    if isinstance(value, types.ModuleType):
        _present_module(value)
    elif isinstance(value, type):
        for kind in value.__mro__:
            if _is_ours(kind) and kind not in _classes and not issubclass(kind, BaseException):
                _present_class(kind)
        choice = _choice(path, value)
        if choice is not None and "__new__" not in vars(value):
            value.__new__, value.__doc__ = choice.constructor(), choice.text
    return value


def _present_module(module: types.ModuleType) -> None:
    own, inside = vars(module), alias(module.__name__).partition(".")[2]
    for name, x in list(own.items()):
        if name[0] != "_" and not isinstance(x, types.ModuleType):
            own[name] = present(x, name, f"{inside}.{name}".lstrip("."))
    if "__getattr__" not in own:
        own["__getattr__"] = lazy_imports.lazy_import(module.__name__, {})[0]


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
register_translator(habits.habitual)
lazy_imports.register_presenter(present)
