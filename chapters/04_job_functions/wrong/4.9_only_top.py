# building.replayed
def replay(call, table):
    def new(x):
        return table(x) if isinstance(x, GraphValue) else x

    return flat(call.f(*map(new, call.args), **{k: new(v) for k, v in call.kwargs.items()}))
