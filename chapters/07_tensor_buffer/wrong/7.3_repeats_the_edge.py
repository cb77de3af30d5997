# batches.corners
def _align(x, shape, dtype, alignment):
    def up(n):
        return -(-n // alignment) * alignment if alignment else n

    height, width = up(max(a.shape[0] for a in x.items)), up(max(a.shape[1] for a in x.items))
    return np.stack([np.pad(a, ((0, height - a.shape[0]), (0, width - a.shape[1]), (0, 0)), "edge")
                     for a in x.items])
