# layers.fan
def fan(shape, mode, data_format=""):
    fan_in = math.prod(shape[1:])
    fan_out = shape[0] * math.prod(shape[2:])
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
