"""Wrappers of public functions and methods (diagnostics/function.pyx), and suggestions for unknown names.

Code inside the package calls functions without wrappers, because its modules import each function from the
file that defines the function.
"""
from __future__ import annotations

import importlib
import types
from collections.abc import Callable

from flowedu.aliases import alias
from flowedu.diagnostics import explain, habits, lazy_imports
from flowedu.diagnostics.function import PublicFunction, register_explainer, register_translator

_COMPILED = type(register_explainer)                     # type of functions in Cython modules
_AS_IT_IS = {"forward", "build"}                         # methods that users define and modules call
# Modules that `import flowedu` imports. diagnostics/lazy_imports.py wraps the others on first use.
PUBLIC = """flowedu nn nn.functional nn.init nn.utils nn.utils.rnn linalg math layers losses optim
    optim.lr_scheduler optimizer random regularizers autograd cuda utils vision models deprecated unittest
    advanced oneflow04.job.env oneflow04.job.scope distribute"""
_skins: dict[tuple[object, str, bool], PublicFunction] = {}
_classes: set[type] = set()


def _choose_none(path: str, value: object) -> None:
    return None


_choice: Callable = _choose_none                         # replaced by oneflow04/names.py


def register_choices(f: Callable) -> None:
    """Register a function f(path, value) for names with two meanings.

    `value` is the object at a public path such as "nn.MSELoss". If the name has a second meaning, f returns
    an object that chooses one of the two for each call. Otherwise it returns None.
    """
    global _choice
    _choice = f


def present_all() -> None:
    """Wrap the functions of the public modules that `import flowedu` imports."""
    for name in PUBLIC.split():
        present(importlib.import_module("flowedu" if name == "flowedu" else f"flowedu.{name}"))


def present(value, name: str | None = None, path: str = ""):
    """Return a public function with its wrapper. A class or a module of flowedu is changed in place.

    Args:
        value: the object.
        name: the public name.
        path: the path below flowedu.
    """
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
    contents, inside = vars(module), alias(module.__name__).partition(".")[2]
    for name, x in list(contents.items()):
        if name[0] != "_" and not isinstance(x, types.ModuleType):
            contents[name] = present(x, name, f"{inside}.{name}".lstrip("."))
    if "__getattr__" not in contents:
        contents["__getattr__"] = lazy_imports.lazy_import(module.__name__, {})[0]


def _is_ours(value) -> bool:
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.startswith("flowedu")


def _present_class(cls: type) -> None:
    """Wrap the methods of one class."""
    _classes.add(cls)
    for name, method in list(vars(cls).items()):
        if (isinstance(method, types.FunctionType) and (name == "__init__" or name[0] != "_"
                                                        and name not in _AS_IT_IS)):
            setattr(cls, name, PublicFunction(method, cls, name))


register_explainer(explain.explained)
register_translator(habits.habitual)
lazy_imports.register_presenter(present)
