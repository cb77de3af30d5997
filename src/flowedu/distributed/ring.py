"""A ring all-reduce, in which every rank communicates with its neighbours only."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.core.sbp.ranks import current
from flowedu.core.values.place import bounds
from flowedu.distributed import comm
from flowedu.tensor.shapes.join_and_pad import cat


def ring_all_reduce(x: Tensor) -> Tensor:
    """Return the sum of all ranks' x; every rank calls this function with the same shape and dtype.

    For k ranks, x has n values and is split into k pieces. In each of the first k - 1 rounds, a rank sends a
    partial sum to the next rank, which adds its own piece. Then each rank has the sum of one piece, and k - 1
    more rounds send these sums around the ring. So a rank sends 2 (k - 1) pieces of n / k values. This is
    almost independent of the number of ranks, and all links have the same load.
    """
    rank, k = current().rank, current().size
    flat = x.detach().reshape(-1)
    pieces = [flat[a:b] for a, b in bounds(flat.numel(), k)]
    for summed in (True, False):
        for turn in range(k - 1):
            mine = rank - turn + (not summed)
            comm.send(pieces[mine % k], (rank + 1) % k)
            got = comm.recv((rank - 1) % k)
            pieces[(mine - 1) % k] = pieces[(mine - 1) % k] + got if summed else got
    return cat(pieces).reshape(x.shape)
