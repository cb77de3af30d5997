"""Launches of softmax, log_softmax, masked_softmax, and cross entropy."""
from __future__ import annotations

import math

from flowedu.cuda.launch import Call, blocks, flag, kernel
from flowedu.cuda.launches.reduce import extent, row_threads
from flowedu.cuda.walk import joined, packed, spread

SHORT = 1024                           # longest row that a warp keeps in registers (softmax.cu)


@kernel("softmax", "log_softmax", "softmax_grad", "log_softmax_grad", file="softmax.cu")
def softmax(call: Call) -> None:
    """ints: [axis]."""
    outer, n, inner = extent(call.args[0].shape, call.ints[0])
    pointers = [v.pointer for v in call.args]
    if call.args[0].size == 0:
        return
    if inner == 1 and n <= SHORT and not call.name.endswith("_grad"):
        call.run(f"{call.name}_short_rows", outer, n, *pointers, blocks=blocks(outer, 4), threads=128)
    elif inner == 1:
        call.run(f"{call.name}_rows", outer, n, *pointers, blocks=blocks(outer, 1), threads=row_threads(n))
    else:
        call.each(f"{call.name}_columns", outer, n, inner, *pointers, n=outer * inner, threads=128)


@kernel("masked_softmax", "masked_softmax_grad", file="masked_softmax.cu")
def masked_softmax(call: Call) -> None:
    """x, mask -> y, or dy, y, mask -> dx. reals: [scale, fill], or [scale] for the gradient."""
    *xs, mask, y = call.args
    if y.size == 0:
        return
    walk = packed(*joined(y.shape, [spread(mask.shape, mask.strides, y.ndim - mask.ndim, y.shape)]))
    n = y.shape[-1]
    call.run(call.name, y.size // n, n, *[x.pointer for x in xs], walk, mask.pointer, *call.reals, y.pointer,
             blocks=blocks(y.size // n, 1), threads=row_threads(n))


@kernel("sparse_softmax_cross_entropy", file="cross_entropy.cu")
def sparse(call: Call) -> None:
    """ints: [ignored label]. labels, logits -> loss, prob."""
    labels, x, loss, prob = call.args
    n = x.shape[-1]
    if loss.size:
        call.run(call.name, loss.size, n, labels.raw(), call.ints[0], x.pointer, loss.pointer, prob.pointer,
                 flag(), blocks=blocks(loss.size, 1), threads=row_threads(n))


@kernel("sparse_softmax_cross_entropy_grad", file="cross_entropy.cu")
def sparse_grad(call: Call) -> None:
    """ints: [ignored label]. dloss, labels, prob -> dlogits."""
    dloss, labels, prob, dx = call.args
    n = prob.shape[-1]
    call.each(call.name, math.prod(prob.shape[:-1]), n, dloss.pointer, labels.raw(), call.ints[0],
              prob.pointer, dx.pointer, flag(),
              n=dx.size)


@kernel("softmax_cross_entropy", file="cross_entropy.cu")
def distribution(call: Call) -> None:
    """labels, logits -> loss, prob."""
    labels, x, loss, prob = call.args
    n = x.shape[-1]
    if loss.size:
        call.run(call.name, loss.size, n, labels.pointer, x.pointer, loss.pointer, prob.pointer,
                 blocks=blocks(loss.size,
                               1),
                 threads=row_threads(n))
