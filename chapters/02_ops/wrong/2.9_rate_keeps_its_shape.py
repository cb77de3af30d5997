# formulas.rates
def run(self, op, inputs, attrs):
    duals = [isinstance(x, Dual) for x in inputs]
    if not any(duals):
        return call_below(op, inputs, attrs)
    v = [x.value if d else x for x, d in zip(inputs, duals)]
    r = [x.rate if d else None for x, d in zip(inputs, duals)]
    y = call_below(op, tuple(v), attrs)
    if op is add:
        return Dual(y, r[0] if r[1] is None else r[1] if r[0] is None else r[0] + r[1])
    if op is sub:
        return Dual(y, r[0] if r[1] is None else -r[1] if r[0] is None else r[0] - r[1])
    if op is mul:
        if r[0] is None:
            return Dual(y, v[0] * r[1])
        return Dual(y, r[0] * v[1] if r[1] is None else r[0] * v[1] + v[0] * r[1])
    if op is neg:
        return Dual(y, -r[0])
    if op is sin:
        return Dual(y, r[0] * cos(v[0]))
    if op is exp:
        return Dual(y, r[0] * y)
    raise no_rule(op)
