# boxing.dual
def backward(self, node, douts):
    g = brought(douts[0], with_texts(self.lay, [{"B": "P", "P": "B"}.get(s, s) for s in self.lay.layout.sbp]))
    return [labelled(on(next(iter(parts_of(g).values())), self.place), None)]
