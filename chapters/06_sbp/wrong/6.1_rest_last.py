# layouts.bounds
def bounds(n, k):
    size = n // k
    return [(i * size, n if i == k - 1 else (i + 1) * size) for i in range(k)]
