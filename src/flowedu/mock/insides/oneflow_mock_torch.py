"""mock_torch: OneFlow's own substitute for torch. Here it is `flowedu.mock.enable("torch")`."""
from __future__ import annotations

from flowedu import mock
from flowedu.errors import ArgumentError

_enabled: list[mock.Mocking] = []


def enable(lazy: bool = False, verbose: bool = False, *, extra_dict: dict | None = None) -> mock.Mocking:
    """Replace `torch` by flowedu in later imports, until `disable()` or the end of the `with` block.

    Args:
        lazy: must be False. With True, OneFlow reports a missing name only when it is called.
        verbose: has no effect. flowedu prints the missing names at exit.
        extra_dict: must be None. OneFlow has a table of further modules here.

    Raises:
        ArgumentError: lazy or extra_dict is set.
    """
    if lazy:
        raise ArgumentError("mock_torch.enable: lazy=True is not supported",
                            expected="lazy=False: a missing name raises an error when it is imported",
                            got="lazy=True", fix="oneflow.mock_torch.enable()")
    if extra_dict:
        raise ArgumentError("mock_torch.enable: extra_dict is not supported", expected="None",
                            got=", ".join(map(str, extra_dict)), fix="import these modules from oneflow")
    _enabled.append(mock.enable("torch"))
    return _enabled[-1]


def disable() -> None:
    """Undo the last `enable`. Do nothing if none is active."""
    while _enabled:
        mocking = _enabled.pop()
        if mocking.on:
            mocking.stop()
            return
