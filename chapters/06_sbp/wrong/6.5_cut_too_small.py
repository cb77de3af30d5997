# boxing.stops_fit
def stops(src, dst, spec):
    for at in (src, dst):
        for i in range(spec.ndim):
            yield Layout((f"S{i}",), at.devices, (at.k,))
