def stops(src, dst, spec):
    return ()
