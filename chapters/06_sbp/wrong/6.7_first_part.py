# boxing.dual
def backward(self, node, douts):
    g = box_like(douts[0], with_texts(self.global_layout, [{"B": "P", "P": "B"}.get(s, s)
                                                           for s in self.global_layout.layout.sbp]))
    return [labelled(on(next(iter(parts_of(g).values())), self.place), None)]
