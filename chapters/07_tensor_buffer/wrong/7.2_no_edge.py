# buffers.weights_one
def taps(source, target, kind):
    at = (np.arange(target) + 0.5) * source / target - 0.5
    low = np.floor(at)
    return np.stack([low, low + 1]).astype(np.intp), np.stack([1 - (at - low), at - low]).astype(np.float32)
