# schedules.ends
def _turns(i, stages, found):
    forward, backward = [p for p in found if not p[1]], [p for p in found if p[1]]
    order, forward = forward[:i + 1], forward[i + 1:]
    while forward or backward:
        order += backward[:1] + forward[:1]
        forward, backward = forward[1:], backward[1:]
    return order
