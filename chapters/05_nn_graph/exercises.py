"""Exercises of chapter 5. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/05_nn_graph

In 1 and 2 a graph is a list of nodes in order, each a tuple (result, op, inputs): ("c", "add", ("a", "b")). Names that
no node makes are inputs of the graph. Every name is made once.
"""


def live(nodes, outputs):
    """The nodes that the values named in `outputs` need, in order: what a dead-code pass keeps."""
    raise NotImplementedError("your turn")


def merged(nodes, outputs):
    """(nodes, outputs) after common subexpressions are merged.

    Of two nodes with the same op on the same inputs the first stays; who read the second reads the first. Merging two
    nodes can make two others equal.
    """
    raise NotImplementedError("your turn")


def folded(weight, bias, gamma, beta, mean, var, epsilon):
    """(weight, bias) of one convolution that does what a convolution and the batch norm after it do at inference.

    weight (out, in, kh, kw) and bias (out,) of the convolution; gamma, beta, mean, var (out,) of the batch norm, which
    makes (y - mean) / sqrt(var + epsilon) * gamma + beta of each channel y. NumPy arrays.
    """
    raise NotImplementedError("your turn")


def peak(buffers):
    """The most bytes that are needed at one time. buffers: [(first step, last step, bytes)], both steps included."""
    raise NotImplementedError("your turn")


def offsets(buffers):
    """A place in the arena for each buffer of the same list: offsets, in the order of the list.

    Two buffers that are alive in the same step must not overlap. Take the largest first, and put each at the lowest
    place that is free during its whole life; of equal ones the first in the list comes first.
    """
    raise NotImplementedError("your turn")


def mean_gradient(gradients, sizes):
    """The gradient of the mean over all samples.

    gradients: for each micro-batch the gradient (array) of its own mean loss; sizes: how many samples it had. They need
    not be equal.
    """
    raise NotImplementedError("your turn")
