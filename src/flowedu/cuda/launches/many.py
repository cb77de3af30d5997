"""Tables of launches over many arrays at once (_kernels/cuda/many.h), and the norm of many gradients.

The norm has no record. clip_grad_norm_ calls it.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from flowedu.core.eager.dispatch import TensorBase, new_on_device
from flowedu.cuda.launch import MOST_BLOCKS, REALS, Call, Launch
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import TYPES, WIDE
from flowedu.cuda.streams import current_stream
from flowedu.cuda.view import View

BLOCK = 2048


def pieces(n: int) -> int:
    return -(-n // BLOCK)


class Table:
    """struct Table with up to `most` rows. A row has n, the first piece, and the values that `form` packs."""

    def __init__(self, form: str, most: int):
        self.form, self.most = struct.Struct("=2q" + form), most
        self.rows: list[bytes] = []
        self.pieces, self.longest = 0, 0

    def add(self, n: int, *fields: int | float) -> None:
        self.longest = max(self.longest, min(n, BLOCK))
        self.rows.append(self.form.pack(n, self.pieces, *fields))
        self.pieces += pieces(n)

    @property
    def threads(self) -> int:
        """Threads of a block, which processes one piece: full warps, with eight elements per thread."""
        return max(-(-self.longest // 256) * 32, 32)

    @property
    def full(self) -> bool:
        return len(self.rows) == self.most

    def raw(self) -> bytes:
        return b"".join([struct.pack("=2q", len(self.rows), self.pieces), *self.rows]).ljust(
            16 + self.most * self.form.size, b"\0")


def _norm(call: Call) -> None:
    """Launch the norm of all values: xs -> y, 0-dim."""
    *xs, y = call.args
    at, table = call.work, Table("q", 128)
    for i, x in enumerate(xs):
        table.add(x.size, x.pointer)
        if table.full or i == len(xs) - 1:
            if table.pieces:
                call.run("square_sums", table.raw(), at, blocks=min(table.pieces, MOST_BLOCKS),
                         threads=table.threads)
            at, table = at + 8 * table.pieces, Table("q", 128)
    call.run("root", (at - call.work) // 8, call.work, y.pointer, blocks=1)


NORM = {code: Launch("norm_of_many", code, _norm, "norms.cu", TYPES[code], WIDE[code],
                     lambda call: 8 * sum(pieces(x.size) for x in call.args[:-1])) for code in REALS}


def norm(xs: Sequence[TensorBase]) -> Any:
    """Return the root of the sum of squares of all elements of the tensors, 0-dim and without history.

    The result is None unless the tensors have one real dtype, are on one GPU, and are row-major.
    """
    place, kind = xs[0]._device, xs[0].dtype
    if not place or kind.code not in NORM or not all(
            x._device == place and x.dtype is kind and x._is_row_major() for x in xs):
        return None
    y = new_on_device((), kind, place)
    views = [View(x.address, kind, x._sizes()) for x in (*xs, y)]
    with machine().on(place - 1):
        NORM[kind.code](views, stream=current_stream(place - 1).handle)
    return y
