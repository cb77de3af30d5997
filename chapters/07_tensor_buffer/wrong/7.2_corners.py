# buffers.edges
def taps(source, target, kind):
    at = np.arange(target) * ((source - 1) / max(target - 1, 1))
    low = np.floor(at)
    index, weight = np.stack([low, low + 1]), np.stack([1 - (at - low), at - low])
    return np.clip(index, 0, source - 1).astype(np.intp), weight.astype(np.float32)
