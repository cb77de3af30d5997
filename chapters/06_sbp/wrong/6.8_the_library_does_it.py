# ranks.neighbours
def ring_all_reduce(x):
    comm.all_reduce(x)
    return x
