"""An all-reduce in which every rank talks to its neighbours only: the ring."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.core.sbp.ranks import current
from flowedu.core.values.place import bounds
from flowedu.distributed import comm
from flowedu.tensor.joining import cat


def ring_all_reduce(x: Tensor) -> Tensor:
    """Return the sum of all ranks' x; every rank calls this with the same shape and dtype.

    x is cut into as many pieces as there are ranks. In the first k - 1 turns sums go round: a rank sends a
    piece to the next one, which adds its own. Then each has one piece summed, and in k - 1 more turns those
    go round. So a rank sends 2 (k - 1) pieces of n / k values, almost independent of the number of ranks, and
    all links have the same load.
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
