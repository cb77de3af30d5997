"""Error for a subclass that overrides a method which only PyTorch calls."""
from __future__ import annotations

from collections.abc import Iterable

from flowedu.errors import UnsupportedError


def refuse_ignored(cls: type, fix: str, uncalled: Iterable[str] | None = None) -> None:
    """Raise UnsupportedError if a class of the user defines a method of `uncalled`.

    Args:
        cls: class of the user, which inherits from a class of the library.
        fix: the advice in the error.
        uncalled: names of methods; default: the names in `_uncalled` of all base classes.
    """
    if uncalled is None:
        uncalled = (name for base in cls.__mro__ for name in vars(base).get("_uncalled", ()))
    names = set(uncalled)
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "flowedu":
            for name in sorted(vars(base).keys() & names):
                raise UnsupportedError(f"class {base.__name__}: {name} would be ignored",
                                       expected="overrides of methods that flowedu calls",
                                       got=f"{name}, which only PyTorch calls", fix=fix)
