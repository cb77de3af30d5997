# layouts.bounds
def bounds(n, k):
    out, at = [], 0
    for size in reversed(parts(n, k)):
        out.append((at, at + size))
        at += size
    return out
