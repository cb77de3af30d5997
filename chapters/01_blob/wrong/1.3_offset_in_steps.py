# values.slice_places
def view(strides, start, step):
    return (tuple(s * t for s, t in zip(strides, step)),
            sum(s * a * t for s, a, t in zip(strides, start, step)))
