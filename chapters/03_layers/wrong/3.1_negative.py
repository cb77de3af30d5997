# layers.pads
def same_pads(size, kernel, stride, dilation, upper):
    need = (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size
    return (need // 2, need - need // 2) if upper else (need - need // 2, need // 2)
