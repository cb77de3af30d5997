# building.replayed
def replay(call, table):
    return flat(call.f(*swapped(call.args, table), **call.kwargs))
