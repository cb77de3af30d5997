# letters.letters
def softmax(x, axis):
    term = axes.same(x.ndim, [axis % x.ndim])
    return term + "->" + term


def cross_entropy(labels, logits):
    a = axes.same(labels.ndim).upper()
    return f"{a},{a}V->{a},{a}V"
