# building.replayed
def replay(call, table):
    out = call.f(*swapped(call.args, table), **{k: swapped(v, table) for k, v in call.kwargs.items()})
    return (out[0] if isinstance(out, (list, tuple)) else out,)
