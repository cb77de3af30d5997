def ring_all_reduce(x):
    me, k = current().rank, current().size
    if k == 1:
        return x + 0
    cuts = bounds(x.numel(), k)
    whole = x.detach().reshape(-1)
    mine = {i: whole[a:b] for i, (a, b) in enumerate(cuts)}
    at = (me + 1) % k
    for _ in range(k - 1):
        comm.send(mine[at], (me + 1) % k)
        at = (at - 1) % k
        mine[at] = mine[at] + comm.recv((me - 1) % k)
    for _ in range(k - 1):
        comm.send(mine[at], (me + 1) % k)
        at = (at - 1) % k
        mine[at] = comm.recv((me - 1) % k)
    return cat([mine[i] for i in range(k)]).reshape(x.shape)
