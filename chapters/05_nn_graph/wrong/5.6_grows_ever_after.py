# scaling.followed
def scale_after(scale, good, overflows, growth, backoff, interval):
    if any(overflows):
        return scale * backoff, 0
    if good + 1 < interval:
        return scale, good + 1
    return scale if scale * growth > LARGEST else scale * growth, good + 1
