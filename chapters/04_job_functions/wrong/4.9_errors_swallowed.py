# building.errors
def replay(call, table):
    try:
        return flat(call.f(*swapped(call.args, table), **{k: swapped(v, table) for k, v in call.kwargs.items()}))
    except Exception:
        return ()
