# schedules.ends
def _turns(i, stages, found):
    if i == 0:
        return list(found)
    return [p for p in found if not p[1]] + [p for p in found if p[1]]
