# formulas.rates
def run(self, op, inputs, attrs):
    if not any(isinstance(x, Dual) for x in inputs):
        return call_below(op, inputs, attrs)
    values = [x.value if isinstance(x, Dual) else x for x in inputs]
    rates = [x.rate if isinstance(x, Dual) else x * 0 for x in inputs]
    y = call_below(op, tuple(values), attrs)
    rule = {add: lambda: rates[0] + rates[1], sub: lambda: rates[0] - rates[1], neg: lambda: -rates[0],
            mul: lambda: rates[0] * values[1],
            sin: lambda: rates[0] * cos(values[0]), exp: lambda: rates[0] * y}.get(op)
    if rule is None:
        raise no_rule(op)
    return Dual(y, rule())
