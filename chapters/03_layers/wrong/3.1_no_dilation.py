# layers.pads
def same_pads(size, kernel, stride, dilation, upper):
    need = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return (need // 2, need - need // 2) if upper else (need - need // 2, need // 2)
