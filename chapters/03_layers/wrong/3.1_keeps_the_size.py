# layers.pads
def same_pads(size, kernel, stride, dilation, upper):
    need = (kernel - 1) * dilation
    return (need // 2, need - need // 2) if upper else (need - need // 2, need // 2)
