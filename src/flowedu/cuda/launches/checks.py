"""Launches of checks on values (ops/checks.py)."""
from __future__ import annotations

from flowedu.cuda.launch import NUMBERS, Call, flag, kernel
from flowedu.cuda.machine import machine
from flowedu.ops.checks import check_number, pack_bounds


def _pack(names: dict) -> tuple[tuple, tuple]:
    """Return the ints and reals of the CPU's kernel, with the number of the check first."""
    low, high, nan = names["low"], names["high"], names["nan"]
    ints, reals = pack_bounds(names.get("tested", names["x"]), low, high, nan)
    return (check_number((low, high, nan, names["words"])), *ints), reals


@kernel("within", file="within.cu", types=(*NUMBERS, 4, 5, 6, 9), pack=_pack)
def within(call: Call) -> None:
    """Launch a check of values: x, or x and the tested values -> y, a copy of x.

    ints: [check, nan, low, high]; reals: [low, high].
    """
    x, tested, y = call.args[0], call.args[-2], call.args[-1]
    check, nan, least, most = call.ints
    call.each("within", tested.size, tested.pointer, *call.reals, least, most, nan, check, flag(),
              n=tested.size)
    if x.size and x.pointer != y.pointer:
        call.other(machine().driver.memcpy_dtod_async, y.pointer, x.pointer, x.size * x.dtype.bytes)
