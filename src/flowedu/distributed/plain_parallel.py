"""Data parallelism in two steps, without buckets and without a wrapper.

Read it before nn/parallel/distributed.py, whose tests compare results with this module.

    model = same_on_all_ranks(model)
    loss(model(mine)).backward()
    average_gradients(model)             # then optimizer.step(), the same on every rank
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.sbp.ranks import current
from flowedu.distributed import comm
from flowedu.tensor.construction.creation import zeros_like


def same_on_all_ranks(module: Module) -> Module:
    """Return the module with rank 0's parameters and buffers. Every rank of the world calls this function."""
    for x in (*module.parameters(), *module.buffers()):
        comm.broadcast(x.data, 0)
    return module


def average_gradients(module: Module) -> None:
    """Replace each parameter's gradient by the mean over all ranks, with one all-reduce per parameter.

    A rank without a gradient adds zeros. Every rank of the world calls this function after the backward pass.
    """
    for p in module.parameters():
        if p.requires_grad:
            grad = zeros_like(p) if p.grad is None else p.grad
            p.grad = comm.all_reduce(grad.detach().contiguous()) / current().size
