# letters.letters
def softmax(x, axis):
    term = axes.same(x.ndim, [axis % x.ndim])
    return term + "->" + term


def cross_entropy(labels, logits):
    a = axes.same(labels.ndim)
    return f"{a},{a}v->{a},{a}v"
