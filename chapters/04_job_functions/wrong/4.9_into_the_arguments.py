# building.replayed
def replay(call, table):
    def new(a):
        if isinstance(a, GraphValue):
            return table(a)
        if isinstance(a, list):
            a[:] = [new(b) for b in a]
            return a
        if isinstance(a, tuple):
            return tuple(new(b) for b in a)
        return a
    return flat(call.f(*[new(a) for a in call.args], **{k: new(a) for k, a in call.kwargs.items()}))
