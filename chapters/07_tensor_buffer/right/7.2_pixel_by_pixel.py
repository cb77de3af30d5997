def taps(source, target, kind):
    import math
    step = source / target
    columns = []
    for j in range(target):
        if kind in ("nearest_neighbor", "nn"):
            pairs = [(j * source // target, 1.0)]
        elif kind == "area" and target < source:
            pairs = [(i, max(min(i + 1, (j + 1) * step) - max(i, j * step), 0) / step)
                     for i in range(math.floor(j * step), math.floor(j * step) + math.ceil(step) + 1)]
        else:
            at = (j + 0.5) * step - 0.5
            low = math.floor(at)
            if kind == "bicubic":
                pairs = [(i, float(_cubic(np.abs(np.float64(at - i))))) for i in range(low - 1, low + 3)]
            else:
                pairs = [(low, 1 - (at - low)), (low + 1, at - low)]
        columns.append([(min(max(i, 0), source - 1), w) for i, w in pairs])
    table = np.array(columns)
    return table[..., 0].T.astype(np.intp), table[..., 1].T.astype(np.float32)
