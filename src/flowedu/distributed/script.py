"""The execution of a user's script by one rank."""
from __future__ import annotations

import importlib.util
import os
import sys
import types
from typing import Any

from flowedu.errors import ArgumentError

HERE = os.path.dirname(os.path.abspath(__file__))


def load(script: str, module: bool) -> tuple[types.CodeType, dict]:
    """Return the code of a file, or of a module (`python -m`), and its initial namespace."""
    if module:
        spec = importlib.util.find_spec(script)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{script}.__main__")
        loader: Any = None if spec is None else spec.loader
        code = None if spec is None else loader.get_code(spec.name)
        if spec is None or code is None:
            raise ArgumentError(f"launch: there is no module {script} that can be run",
                                expected="a module, or a package with __main__", got=script, at="",
                                fix="the name as in python -m NAME")
        return code, {"__file__": spec.origin, "__spec__": spec, "__package__": spec.parent}
    try:
        with open(script, "rb") as f:
            source = f.read()
    except OSError as error:
        raise ArgumentError(f"launch: cannot read {script}", got=str(error), at="",
                            fix="a Python file's path") from None
    return compile(source, script, "exec"), {"__file__": script, "__spec__": None, "__package__": None}


def arguments(script: str, module: bool, args: list[str]) -> None:
    """Set sys.argv and sys.path as Python does for a script."""
    if module:
        spec = importlib.util.find_spec(script)
        sys.path.insert(0, os.getcwd())
        sys.argv[:] = [spec.origin if spec and spec.origin else script, *args]
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        sys.argv[:] = [script, *args]


def main_module(start: dict) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(start, __builtins__=__builtins__)
    return module


def user_traceback(tb):
    """Return the part of a traceback inside the script, without the frames that ran the script."""
    first = tb
    while tb is not None and os.path.dirname(os.path.abspath(tb.tb_frame.f_code.co_filename)) == HERE:
        tb = tb.tb_next
    return tb or first


def exit_code(error: SystemExit) -> int:
    """Return the exit code that the shell would see."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1
