"""Mock of the packages torch and oneflow: programs written for them run unchanged on flowedu.

    import flowedu
    flowedu.mock.enable("torch", "oneflow")      # until flowedu.mock.disable()
    import torch                                 # flowedu; also torch.nn, torch.utils.data, ...

    with flowedu.mock.enable("torch"):           # within the block; blocks may be nested
        import torch

    python -m flowedu.mock --as torch program.py --its arguments
    python -m flowedu.mock --as oneflow -m oneflow.distributed.launch --nproc_per_node 2 program.py

Mocking torch includes torchvision, and mocking oneflow includes flowvision. Both are flowedu.vision, unless
the path has a pure-Python package of this name, which then runs on flowedu.

A missing name raises an AttributeError or ImportError that suggests the nearest name. A summary of missing
names is printed on stderr at exit. Under oneflow, `oneflow.mock_torch` (0.9) replaces torch.
"""
from __future__ import annotations

import atexit
import sys
import types

from flowedu.diagnostics.function import register_translator
from flowedu.errors import ArgumentError
from flowedu.mock.modules import MISSING, Finder, wanted
from flowedu.mock.names import WITH
from flowedu.diagnostics.habits import habitual
from flowedu.mock.translate import translated
from flowedu.nn.methods import state

NAMES = tuple(WITH)
_enabled: list[Mocking] = []


class Mocking:
    """Result of `enable`, also a context manager that restores the original modules at its end."""

    def __init__(self, names: tuple[str, ...]):
        self.names = tuple(path for name in names for path in WITH[name])
        self.finder = Finder(self.names)
        self.before: dict[str, types.ModuleType] = {}
        self.on = False

    def start(self) -> Mocking:
        self.before = {path: sys.modules.pop(path) for path in _below(self.names)}
        sys.meta_path.insert(0, self.finder)
        self.on = True
        _translate()
        return self

    def stop(self) -> None:
        """Restore the original modules. A second call has no effect."""
        if not self.on:
            return
        self.on = False
        _enabled.remove(self)
        sys.meta_path.remove(self.finder)
        for path in _below(self.names):
            del sys.modules[path]
        sys.modules.update(self.before)
        _translate()

    def __enter__(self) -> Mocking:
        return self

    def __exit__(self, *error) -> None:
        self.stop()


def _below(names: tuple[str, ...]) -> list[str]:
    return [path for path in sys.modules if path.partition(".")[0] in names]


def _translate() -> None:
    """Register the translator of invalid calls: PyTorch's (mock/translate.py) while torch is mocked.

    Meanwhile, state_dict() has PyTorch's defaults.
    """
    on = any(m.on and "torch" in m.names for m in _enabled)
    register_translator(translated if on else habitual)
    state.defaults.live = not on


def enable(*names: str) -> Mocking:
    """Replace `torch`, `oneflow`, their submodules, torchvision, and flowvision by flowedu in later imports.

    `disable()` or the end of the `with` block restores the modules that were imported under these names.
    Existing references to modules do not change.

    Args:
        *names: "torch", "oneflow", or both (default).

    Raises:
        ArgumentError: a name is not supported.
    """
    for name in names:
        if name not in NAMES:
            package = next((f'"{n}"' for n in NAMES if name in WITH[n]), None)
            raise ArgumentError("mock.enable: no package that flowedu stands in for",
                                expected='"torch" or "oneflow"',
                                got=repr(name), fix='flowedu.mock.enable("torch")' if package is None else
                                f"flowedu.mock.enable({package}): {name} comes with it")
    if not _enabled:
        atexit.unregister(report)
        atexit.register(report)
    _enabled.append(Mocking(names or NAMES))
    return _enabled[-1].start()


def disable() -> None:
    """Undo the last `enable`. Raise ArgumentError if none is active."""
    if not _enabled:
        raise ArgumentError("mock.disable: nothing is enabled", expected="flowedu.mock.enable() before",
                            got="none", fix="leave it away")
    _enabled[-1].stop()


def is_enabled(name: str = "torch") -> bool:
    """Return True if `import name` imports flowedu."""
    return any(name in mocking.names for mocking in _enabled)


def report() -> None:
    """Print the missing names that were used, with counts, to stderr."""
    if MISSING:
        text = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in MISSING.most_common(12))
        rest = f" and {len(MISSING) - 12} more" if len(MISSING) > 12 else ""
        print(f"flowedu.mock: asked for, and not there: {text}{rest}", file=sys.stderr)


__all__ = ["enable", "disable", "is_enabled", "report", "wanted"]
