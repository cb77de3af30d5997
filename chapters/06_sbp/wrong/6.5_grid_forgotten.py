# boxing.stops_fit
def stops(src, dst, spec):
    for at in (src, dst):
        yield Layout(("B",), at.devices, at.hierarchy)
