# building.replayed
def replay(call, table):
    out = call.f(*substitute(call.args, table), **{k: substitute(v, table) for k, v in call.kwargs.items()})
    return (out[0] if isinstance(out, (list, tuple)) else out,)
