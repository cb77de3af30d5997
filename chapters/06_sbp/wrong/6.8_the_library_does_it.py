# ranks.neighbours
def ring_all_reduce(x):
    y = x.clone()
    comm.all_reduce(y)
    return y
