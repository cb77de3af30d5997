"""Launches of resize2d, whose rows and columns are listed in its attributes, and of ctc_loss."""
from __future__ import annotations

import struct

from flowedu.cuda.launch import Call, address_of_constants, blocks, flag, kernel
from flowedu.cuda.view import View


def _taps(call: Call, x: View, y: View) -> bytes:
    """Return struct Taps of resize.cu. ints: interpolate, then positions; reals: weights."""
    return struct.pack("=8q", x.shape[0] * x.shape[1], *x.shape[2:], *y.shape[2:], call.ints[0],
                       address_of_constants(tuple(call.ints[1:]), "q"),
                       address_of_constants(tuple(call.reals), "d"))


@kernel("resize2d", file="resize.cu")
def resize2d(call: Call) -> None:
    x, y = call.args
    call.each("resize2d", _taps(call, x, y), x.pointer, y.pointer, n=y.size)


@kernel("resize2d_grad", file="resize.cu")
def resize2d_grad(call: Call) -> None:
    dy, dx = call.args
    call.clear(dx.pointer, dx.size * dx.dtype.bytes)
    call.each("resize2d_grad", _taps(call, dx, dy), dy.pointer, dx.pointer, n=dy.size)


def _batch(call: Call, x: View, labels: View, steps: View, counts: View) -> bytes:
    """Return struct Batch of ctc.cu. ints: [blank, zero_infinity]."""
    return b"".join([struct.pack("=6q", *x.shape, labels.shape[1], call.ints[0], 2 * labels.shape[1] + 1),
                     labels.raw(), steps.raw(), counts.raw()])


def _rows(x: View, labels: View, rows: int) -> int:
    return 8 * x.shape[1] * rows * (2 * labels.shape[1] + 1)


@kernel("ctc_loss", file="ctc.cu", work=lambda call: _rows(call.args[0], call.args[1], 2))
def ctc_loss(call: Call) -> None:
    """log_probs, targets, input_lengths, target_lengths -> loss."""
    *inputs, y = call.args
    if y.size:
        call.run("ctc_loss", _batch(call, *inputs), call.ints[1], inputs[0].pointer, y.pointer,
                 call.work, flag(), blocks=blocks(y.size, 1), threads=64)


def _ctc_grad_work(call: Call) -> int:
    log_probs, labels = call.args[1], call.args[2]
    return _rows(log_probs, labels, log_probs.shape[0] + 3)


@kernel("ctc_loss_grad", file="ctc.cu", work=_ctc_grad_work)
def ctc_loss_grad(call: Call) -> None:
    """dloss, then the inputs of ctc_loss -> dlog_probs."""
    dloss, *inputs, dx = call.args
    call.clear(dx.pointer, dx.size * dx.dtype.bytes)
    if dloss.size:
        call.run("ctc_loss_grad", _batch(call, *inputs), dloss.pointer, inputs[0].pointer, dx.pointer,
                 call.work, flag(), blocks=blocks(dloss.size, 1), threads=64)
