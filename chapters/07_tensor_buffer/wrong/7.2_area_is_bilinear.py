# buffers.centres
def taps(source, target, kind):
    step, i = source / target, np.arange(target)
    if kind in ("nearest_neighbor", "nn"):
        index, weight = np.floor(i * step)[None], np.ones((1, target))
    else:
        at = (i + 0.5) * step - 0.5
        low = np.floor(at)
        if kind == "bicubic":
            index = low + np.arange(-1, 3)[:, None]
            weight = _cubic(np.abs(at - index))
        else:
            index, weight = np.stack([low, low + 1]), np.stack([1 - (at - low), at - low])
    return np.clip(index, 0, source - 1).astype(np.intp), weight.astype(np.float32)
