# building.replayed
def replay(call, table):
    new = lambda x: table(x) if isinstance(x, GraphValue) else x
    return flat(call.f(*map(new, call.args), **{k: new(v) for k, v in call.kwargs.items()}))
