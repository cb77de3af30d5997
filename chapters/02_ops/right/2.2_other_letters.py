def softmax(x, axis):
    term = "".join(chr(ord("i") + k) for k in range(x.ndim))
    whole = term[axis]
    term = term.replace(whole, whole.upper())
    return term + "->" + term


def cross_entropy(labels, logits):
    rows = "".join(chr(ord("i") + k) for k in range(labels.ndim))
    return f"{rows},{rows}C->{rows},{rows}C"
