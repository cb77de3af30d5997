# boxing.stops_fit
def stops(src, dst, spec):
    for at in (src, dst):
        for sbp in itertools.product(["S0", "B", "P"], repeat=len(at.hierarchy)):
            middle = Layout(sbp, at.devices, at.hierarchy)
            if middle.fits(spec.shape):
                yield middle
