def replay(call, table):
    from flowedu.core.graph.ir import GraphValue

    def new(x):
        if isinstance(x, GraphValue):
            return table(x)
        return type(x)([new(y) for y in x]) if type(x) in (list, tuple) else x

    args, kwargs = [new(x) for x in call.args], {k: new(x) for k, x in call.kwargs.items()}
    return flat(call.f(*args, **kwargs))
