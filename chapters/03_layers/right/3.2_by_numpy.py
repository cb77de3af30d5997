import numpy as np


def fan(shape, mode, data_format=""):
    if len(shape) < 2:
        kept = {"fan_in": 1, "fan_out": shape[0] if shape else 1}
    else:
        shape = np.moveaxis(np.empty(shape, np.bool_), -1, 1).shape if data_format[-1:] == "C" else shape
        outputs, inputs, *space = shape
        windows = int(np.prod(space, dtype=np.int64))
        kept = {"fan_in": inputs * windows, "fan_out": outputs * windows}
    kept["fan_avg"] = sum(kept.values()) / 2
    return kept[mode]
