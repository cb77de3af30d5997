"""Launches of convolutions of NCHW images, and of NHWC images (conv2d_last), which differ in strides."""
from __future__ import annotations

import struct
from typing import NamedTuple

from flowedu.cuda.launch import Call, blocks, kernel
from flowedu.cuda.launches.matmul import tiles
from flowedu.cuda.view import View

FEW = 4                                # with fewer channels per group, loops are faster than a matrix product
NONE = (0, 0, 0, 0, 0.0, 0.0, 0.0)     # no operation on an output before it is stored


class Sizes(NamedTuple):
    """struct Conv of conv.h, without the strides."""
    n: int
    c: int
    h: int
    w: int
    o: int
    oh: int
    ow: int
    kh: int
    kw: int
    sh: int
    sw: int
    top: int
    left: int
    dh: int
    dw: int
    groups: int
    cg: int
    og: int


def _read(call: Call, x: View, w: View, y: View) -> tuple[Sizes, bytes]:
    """Return the sizes of a call, and struct Conv of conv.h.

    ints: stride h, w; pad top, bottom, left, right; dilation h, w; groups.
    """
    order = (0, 3, 1, 2) if call.name.startswith("conv2d_last") else (0, 1, 2, 3)
    images, outputs = [[v.shape[d] for d in order] for v in (x, y)]
    n, c, h, width = images
    o, oh, ow = outputs[1:]
    kh, kw = w.shape[2:]
    a = call.ints
    s = Sizes(n, c, h, width, o, oh, ow, kh, kw, a[0], a[1], a[2], a[4], a[6], a[7], a[8], c // a[8],
              o // a[8])
    return s, struct.pack("=26q", *s, *[v.strides[d] for v in (x, y) for d in order])


@kernel("conv2d", "conv2d_last", file="conv.cu")
def forward(call: Call) -> None:
    _forward(call, NONE)


@kernel("conv2d_last_norm", file="conv.cu")
def forward_norm(call: Call) -> None:
    """x, w, gamma, beta, mean, var -> y. reals: epsilon, low, high."""
    _forward(call, (*(v.pointer for v in call.args[2:6]), *call.reals))


def _forward(call: Call, finish: tuple) -> None:
    x, w, y = call.args[0], call.args[1], call.args[-1]
    s, raw = _read(call, x, w, y)
    if y.size == 0:
        return
    if s.og < FEW:
        call.each("conv_forward_direct", raw, x.pointer, w.pointer, y.pointer, *finish, n=y.size,
                  file="conv_direct.cu")
    else:
        call.run("conv_forward", raw, x.pointer, w.pointer, y.pointer, *finish,
                 blocks=blocks(s.groups * tiles(s.og, s.n * s.oh * s.ow), 1))


@kernel("conv2d_input_grad", "conv2d_last_input_grad", file="conv.cu")
def input_grad(call: Call) -> None:
    dy, w, dx = call.args
    s, raw = _read(call, dx, w, dy)
    if dx.size == 0:
        return
    if s.cg < FEW:
        call.each("conv_input_grad_direct", raw, dy.pointer, w.pointer, dx.pointer, n=dx.size,
                  file="conv_direct.cu")
    else:
        call.run("conv_input_grad", raw, dy.pointer, w.pointer, dx.pointer,
                 blocks=blocks(s.groups * tiles(s.cg, s.n * s.h * s.w), 1))


def _parts(s: Sizes) -> int:
    """Return the number of blocks for a tile of dw: there are few tiles, each a sum over all pixels."""
    dw_tiles, pixels = s.groups * tiles(s.og, s.cg * s.kh * s.kw), s.n * s.oh * s.ow
    return max(1, min(256 // max(dw_tiles, 1), pixels // 1024))


def _weight_work(call: Call) -> int:
    dy, x, dw = call.args
    parts = _parts(_read(call, x, dw, dy)[0])
    return dw.size * dw.dtype.bytes * parts if parts > 1 else 0


@kernel("conv2d_weight_grad", "conv2d_last_weight_grad", file="conv.cu", work=_weight_work)
def weight_grad(call: Call) -> None:
    dy, x, dw = call.args
    if dw.size == 0:
        return
    s, raw = _read(call, x, dw, dy)
    parts = _parts(s)
    call.run("conv_weight_grad", raw, dy.pointer, x.pointer, call.work if parts > 1 else dw.pointer, parts,
             blocks=blocks(parts * s.groups * tiles(s.og, s.cg * s.kh * s.kw), 1))
    if parts > 1:
        call.each("conv_add_parts", dw.size, parts, call.work, dw.pointer, n=dw.size)
