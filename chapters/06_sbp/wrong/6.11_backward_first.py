# schedules.each_once
def _turns(i, stages, found):
    forward, backward = [p for p in found if not p[1]], [p for p in found if p[1]]
    order = forward[:stages - 1 - i]
    rest = forward[stages - 1 - i:]
    while backward or rest:
        order += backward[:1] + rest[:1]
        backward, rest = backward[1:], rest[1:]
    return order
