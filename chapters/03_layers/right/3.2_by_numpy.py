import numpy as np


def fan(shape, mode, data_format=""):
    shape = np.moveaxis(np.empty(shape, np.bool_), -1, 1).shape if data_format[-1:] == "C" else shape
    outputs, inputs, *space = shape
    windows = int(np.prod(space))
    kept = {"fan_in": inputs * windows, "fan_out": outputs * windows}
    kept["fan_avg"] = sum(kept.values()) / 2
    return kept[mode]
