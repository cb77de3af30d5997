def bounds(n, k):
    each, more = divmod(n, k)
    return [(i * each + min(i, more), (i + 1) * each + min(i + 1, more)) for i in range(k)]
