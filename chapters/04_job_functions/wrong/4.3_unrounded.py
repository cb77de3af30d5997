# plans.aligned
def place(buffers):
    end = 0
    for b in buffers:
        b.offset = end
        end += b.nbytes
    return end
