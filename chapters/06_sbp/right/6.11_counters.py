def _turns(i, stages, found):
    todo, order, begun = list(found), [], 0
    while todo:
        backward = next((p for p in todo if p[1]), None)
        forward = next((p for p in todo if not p[1]), None)
        take = forward if forward is not None and (backward is None or begun < stages - i) else backward
        begun += -1 if take[1] else 1
        order.append(take)
        todo.remove(take)
    return order
