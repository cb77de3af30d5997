"""Data parallelism in two steps, without buckets and without a wrapper: read this before nn/parallel/distributed.py, whose
laws compare with it.

    model = same_on_all_ranks(model)
    loss(model(mine)).backward()
    average_gradients(model)             # then optimizer.step(), on every rank the same
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.sbp.ranks import current
from flowedu.distributed import comm
from flowedu.tensor.creation import zeros_like


def same_on_all_ranks(module: Module) -> Module:
    """The module, with rank 0's parameters and buffers; every rank of the world calls this."""
    for x in (*module.parameters(), *module.buffers()):
        comm.broadcast(x.data, 0)
    return module


def average_gradients(module: Module) -> None:
    """Each parameter's gradient becomes the mean of all ranks', one all-reduce after the other; a rank that has none adds
    zeros. Every rank of the world calls this after backward."""
    for p in module.parameters():
        if p.requires_grad:
            grad = zeros_like(p) if p.grad is None else p.grad
            p.grad = comm.all_reduce(grad.detach().contiguous()) / current().size
