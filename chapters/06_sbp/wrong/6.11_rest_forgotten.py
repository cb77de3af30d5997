# schedules.each_once
def _turns(i, stages, found):
    forward, backward = [p for p in found if not p[1]], [p for p in found if p[1]]
    order = forward[:stages - i]
    for b, f in zip(backward, forward[stages - i:]):
        order += [b, f]
    return order
