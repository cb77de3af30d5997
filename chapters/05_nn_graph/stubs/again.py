def again(self, node):
    return Recomputed(node, node.inputs, node.outputs)
