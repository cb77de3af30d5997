def scale_after(scale, good, overflows, growth, backoff, interval):
    overflow = True in overflows
    good = 0 if overflow else good + 1
    left = interval - good
    factor = growth if not left else 1.0
    if overflow:
        factor = backoff
    good = good if left else 0
    return (scale * factor if scale * factor <= LARGEST else scale), good
