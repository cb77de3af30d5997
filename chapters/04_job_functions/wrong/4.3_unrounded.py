# plans.aligned
def place(buffers):
    end = 0
    for b in buffers:
        if b.in_arena:
            b.offset = end
            end += b.nbytes
    return end
