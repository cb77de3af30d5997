# layers.fan
def fan(shape, mode, data_format=""):
    fan_in = math.prod(shape[1:])
    space = shape[1:-1] if data_format.endswith("C") else shape[2:]
    fan_out = shape[0] * math.prod(space if len(shape) > 2 else ())
    return {"fan_in": fan_out, "fan_out": fan_in, "fan_avg": (fan_in + fan_out) / 2}[mode]
