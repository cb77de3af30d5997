# letters.letters
def softmax(x, axis):
    term = axes.same(x.ndim, range(x.ndim))
    return term + "->" + term


def cross_entropy(labels, logits):
    a = axes.same(labels.ndim)
    return f"{a},{a}V->{a},{a}V"
