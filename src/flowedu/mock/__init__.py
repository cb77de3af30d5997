"""`import torch` and `import oneflow` give flowedu: programs written for those run as they are.

    import flowedu
    flowedu.mock.enable("torch", "oneflow")      # from here on; flowedu.mock.disable() ends it
    import torch                                 # is flowedu, and all of torch.nn, torch.utils.data ...

    with flowedu.mock.enable("torch"):           # for a while; such blocks may be nested
        import torch

    python -m flowedu.mock --as torch program.py --its arguments

torchvision comes with torch, flowvision with oneflow: both are flowedu.vision.

A name that flowedu lacks is an AttributeError or an ImportError that says the nearest there is. What a program asked for
and did not find is told on stderr when it ends. What OneFlow's own `oneflow.mock_torch` does for OneFlow (0.9).
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
    """What `enable` returns: a context at whose end all is as before."""

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
        """As before; a second time does nothing."""
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
    """While torch is stood in for, a call that does not fit may be one of PyTorch's (mock/translate.py), and state_dict()
    is, which is called on modules that know of no face."""
    on = any(m.on and "torch" in m.names for m in _enabled)
    register_translator(translated if on else habitual)
    state.defaults.live = not on


def enable(*names: str) -> Mocking:
    """From here on `import torch`, `import oneflow`, what is below them, torchvision and flowvision are flowedu's.

    names: of "torch" and "oneflow"; none: both. What was imported under these names before comes back with `disable()`, or
    at the end of the `with` block. Modules that a program holds already stay what they are. ArgumentError for another name.
    """
    for name in names:
        if name not in NAMES:
            whole = next((f'"{n}"' for n in NAMES if name in WITH[n]), None)
            raise ArgumentError("mock.enable: no package that flowedu stands in for", expected='"torch" or "oneflow"',
                                got=repr(name), fix=f"flowedu.mock.enable({whole}): {name} comes with it" if whole else
                                'flowedu.mock.enable("torch")')
    if not _enabled:
        atexit.unregister(report)
        atexit.register(report)
    _enabled.append(Mocking(names or NAMES))
    return _enabled[-1].start()


def disable() -> None:
    """End what the last `enable` began. ArgumentError where none is on."""
    if not _enabled:
        raise ArgumentError("mock.disable: nothing is enabled", expected="flowedu.mock.enable() before", got="none",
                            fix="leave it away")
    _enabled[-1].stop()


def is_enabled(name: str = "torch") -> bool:
    """Whether `import name` gives flowedu."""
    return any(name in mocking.names for mocking in _enabled)


def report() -> None:
    """Tell on stderr what was asked for and not found, and how often."""
    if MISSING:
        told = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in MISSING.most_common(12))
        rest = f" and {len(MISSING) - 12} more" if len(MISSING) > 12 else ""
        print(f"flowedu.mock: asked for, and not there: {told}{rest}", file=sys.stderr)


__all__ = ["enable", "disable", "is_enabled", "report", "wanted"]
