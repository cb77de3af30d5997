def same_pads(size, kernel, stride, dilation, upper):
    reach, rest = (kernel - 1) * dilation + 1, size % stride
    total = max(reach - (rest or stride), 0)
    half, odd = divmod(total, 2)
    return (half, half + odd) if upper else (half + odd, half)
