"""Tables of launches over many arrays at once (_kernels/cuda/many.h); and the norm of many gradients, which has no record:
it is what clip_grad_norm_ asks for."""
from __future__ import annotations

import struct
from collections.abc import Sequence

from flowedu.core.eager.dispatch import TensorBase, new_elsewhere
from flowedu.cuda.launch import MOST_BLOCKS, REALS, Call, Launch
from flowedu.cuda.machine import machine
from flowedu.cuda.modules import TYPES, WIDE
from flowedu.cuda.streams import current_stream
from flowedu.cuda.view import View

BLOCK = 2048


def pieces(n: int) -> int:
    return -(-n // BLOCK)


class Table:
    """struct Table with room for `most` rows, each of which is n, first and what `form` packs."""

    def __init__(self, form: str, most: int):
        self.form, self.most, self.rows, self.pieces, self.longest = struct.Struct("=2q" + form), most, [], 0, 0

    def add(self, n: int, *more: int | float) -> None:
        self.longest = max(self.longest, min(n, BLOCK))
        self.rows.append(self.form.pack(n, self.pieces, *more))
        self.pieces += pieces(n)

    @property
    def threads(self) -> int:
        """Of a block, which goes through a piece: whole warps, eight elements to a thread."""
        return max(-(-self.longest // 256) * 32, 32)

    @property
    def full(self) -> bool:
        return len(self.rows) == self.most

    def raw(self) -> bytes:
        return b"".join([struct.pack("=2q", len(self.rows), self.pieces), *self.rows]).ljust(
            16 + self.most * self.form.size, b"\0")


def _norm(call: Call) -> None:
    """xs -> y, a number."""
    *xs, y = call.args
    at, table = call.work, Table("q", 128)
    for i, x in enumerate(xs):
        table.add(x.size, x.pointer)
        if table.full or i == len(xs) - 1:
            if table.pieces:
                call.run("square_sums", table.raw(), at, blocks=min(table.pieces, MOST_BLOCKS), threads=table.threads)
            at, table = at + 8 * table.pieces, Table("q", 128)
    call.run("root", (at - call.work) // 8, call.work, y.pointer, blocks=1)


NORM = {code: Launch("norm_of_many", code, _norm, "norms.cu", TYPES[code], WIDE[code],
                     lambda call: 8 * sum(pieces(x.size) for x in call.args[:-1])) for code in REALS}


def norm(xs: Sequence[TensorBase]) -> TensorBase | None:
    """The root of the sum of the squares of all numbers in these tensors, 0-dim and without history; None: they are not all
    of one real type, on one GPU, row by row."""
    place, kind = xs[0]._device, xs[0].dtype
    if not place or kind.code not in NORM or not all(
            x._device == place and x.dtype is kind and x._is_row_major() for x in xs):
        return None
    y = new_elsewhere((), kind, place)
    views = [View(x.address, kind, x._sizes()) for x in (*xs, y)]
    with machine().on(place - 1):
        NORM[kind.code](views, stream=current_stream(place - 1).handle)
    return y
