def place(buffers):
    """Place the largest first, each into the smallest gap that fits; of equal ones the longest life first."""
    done = []
    for b in sorted((b for b in buffers if b.in_arena), key=lambda b: (rounded(b.nbytes), b.last - b.first,
                                                                       -b.first),
                    reverse=True):
        taken = sorted((o.offset, o.offset + rounded(o.nbytes)) for o in done if o.last >= b.first
                       and o.first <= b.last)
        gaps, end = [], 0
        for start, stop in taken:
            if start - end >= rounded(b.nbytes):
                gaps.append((start - end, end))
            end = max(end, stop)
        b.offset = min(gaps)[1] if gaps else end
        done.append(b)
    return max((b.offset + rounded(b.nbytes) for b in done), default=0)
