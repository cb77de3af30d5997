"""Launches of batch norm and layer norm."""
from __future__ import annotations

import math
import struct

from flowedu.cuda.launch import Call, blocks, kernel
from flowedu.cuda.launches.reduce import extent, row_threads
from flowedu.cuda.view import View

COLUMNS = (32, 8, 1)                   # threads: adjacent channels, and threads that share one


def _norm(call: Call, x: View) -> tuple[int, int, bytes]:
    """Return (channels, inner size, struct Norm). ints: [axis]; reals: [epsilon, low, high] or [epsilon]."""
    outer, channels, inner = extent(x.shape, call.ints[0])
    low, high = call.reals[1:3] if len(call.reals) > 1 else (-math.inf, math.inf)
    return channels, inner, struct.pack("=3q3d", outer, channels, inner, call.reals[0], low, high)


def _by_channel(call: Call, name: str, channels: int, inner: int, *arguments) -> None:
    """Queue a kernel that computes sums over each channel."""
    if inner == 1:
        call.run(f"{name}_columns", *arguments, blocks=-(-channels // 32), threads=COLUMNS)
    else:
        call.run(f"{name}_rows", *arguments, blocks=channels)


@kernel("batch_norm", "batch_norm_clip", file="batch_norm.cu")
def batch_norm(call: Call) -> None:
    """x, gamma, beta -> y, mean, var."""
    x, gamma, beta = call.args[:3]
    y, mean, var = call.args[3:]
    channels, inner, raw = _norm(call, x)
    if channels:
        _by_channel(call, "moments", channels, inner, raw, x.pointer, mean.pointer, var.pointer)
        call.each("normalise", raw, *[v.pointer for v in (x, gamma, beta, mean, var, y)], n=x.size)


@kernel("batch_norm_infer", file="batch_norm.cu")
def batch_norm_infer(call: Call) -> None:
    """x, gamma, beta, mean, var -> y."""
    call.each("normalise", _norm(call, call.args[0])[2], *[v.pointer for v in call.args], n=call.args[0].size)


@kernel("batch_norm_grad", "batch_norm_clip_grad", file="batch_norm.cu",
        work=lambda call: 16 * call.args[2].size)
def batch_norm_grad(call: Call) -> None:
    """dy, x, gamma, beta (only with clipping), mean, var -> dx, dgamma, dbeta."""
    clip = call.name == "batch_norm_clip_grad"
    x, gamma = call.args[1:3]
    dx, dgamma, dbeta = call.args[-3:]
    inputs = call.args[:-3]
    if not clip:
        # The kernel has a parameter for beta, which it reads only for clipping.
        inputs = (*inputs[:3], gamma, *inputs[3:])
    channels, inner, raw = _norm(call, x)
    if channels:
        arguments = (raw, int(clip), *[v.pointer for v in inputs])
        _by_channel(call, "sums", channels, inner, *arguments, dgamma.pointer, dbeta.pointer, call.work)
        call.each("norm_grad", *arguments, call.work, dx.pointer, n=x.size)


def _rows(x: View, begin: int) -> tuple[int, int]:
    return math.prod(x.shape[:begin]), math.prod(x.shape[begin:])


@kernel("layer_norm", file="layer_norm.cu")
def layer_norm(call: Call) -> None:
    """ints: [begin_norm_axis]; reals: [epsilon]. x, gamma, beta -> y, mean, inv_std."""
    rows, n = _rows(call.args[0], call.ints[0])
    if rows:
        call.run("layer_norm", rows, n, call.reals[0], *[v.pointer for v in call.args],
                 blocks=blocks(rows, 1), threads=row_threads(n))


@kernel("layer_norm_grad", file="layer_norm.cu")
def layer_norm_grad(call: Call) -> None:
    """ints: [begin_norm_axis]. dy, x, gamma, mean, inv_std -> dx, dgamma, dbeta."""
    pointers = [v.pointer for v in call.args]
    dy, x, gamma = pointers[:3]
    mean, inv_std = pointers[3:5]
    dx, dgamma, dbeta = pointers[5:]
    rows, n = _rows(call.args[1], call.ints[0])
    if rows and n:
        call.run("layer_norm_grad", rows, n, dy, x, gamma, mean, inv_std, dx, blocks=blocks(rows, 1),
                 threads=row_threads(n))
    if n:
        call.run("layer_norm_grad_columns", rows, n, dy, x, mean, inv_std, dgamma, dbeta, blocks=-(-n // 32),
                 threads=COLUMNS)
