# plans.no_overlap
def place(buffers):
    last, end = None, 0
    for b in buffers:
        b.offset = (0 if last is None or last.last < b.first or b.last < last.first else last.offset
                    + rounded(last.nbytes))
        end = max(end, b.offset + rounded(b.nbytes))
        last = b
    return end
