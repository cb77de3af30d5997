# building.replayed
def replay(call, table):
    return flat(call.f(*substitute(call.args, table), **call.kwargs))
