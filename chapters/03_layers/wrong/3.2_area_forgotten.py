# layers.fan
def fan(shape, mode, data_format=""):
    fan_in = shape[-1] if data_format.endswith("C") else shape[1]
    return {"fan_in": fan_in, "fan_out": shape[0], "fan_avg": (fan_in + shape[0]) / 2}[mode]
