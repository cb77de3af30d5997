# steps.made_once
def again(self, node):
    table, entered = {}, {}
    for old in self.nodes:
        inputs = tuple(table[x] if x in table else self._enter(x, entered) for x in old.inputs)
        outputs = self.tracer.append(old.op, inputs, old.attrs, reseed=False)
        table.update(zip(old.outputs, outputs))
        if old is node:
            return Recomputed(old, inputs, outputs)
