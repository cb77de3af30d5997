# layouts.bounds
def bounds(n, k):
    size = -(-n // k)
    return [(min(i * size, n), min((i + 1) * size, n)) for i in range(k)]
