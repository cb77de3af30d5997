# layers.fan
def fan(shape, mode, data_format=""):
    space = 1
    last = data_format == "NHWC"
    for n in shape[1:-1] if last else shape[2:]:
        space *= n
    channels = shape[-1] if last else shape[1]
    a, b = channels * space, shape[0] * space
    return {"fan_in": a, "fan_out": b, "fan_avg": (a + b) / 2}[mode]
