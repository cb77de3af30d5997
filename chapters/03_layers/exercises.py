"""Exercises of chapter 3. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/03_layers
"""


def same_pads(size, kernel, stride, lower):
    """(before, after): the zeros a "SAME" convolution puts before and after one axis.

    There are to be ceil(size / stride) windows of `kernel` elements, each `stride` after the one before; no more zeros
    than they need. If the number of zeros is odd, the extra one comes before (lower=True, SAME_LOWER) or after
    (SAME_UPPER).
    """
    raise NotImplementedError("your turn")


def moving_mean(start, batch_mean, momentum, steps):
    """The moving mean after `steps` steps that all see the same batch_mean. Without a loop.

    Each step makes it momentum * moving + (1 - momentum) * batch_mean.
    """
    raise NotImplementedError("your turn")


def scaled_dense(x, units, name, kernel_initializer):
    """A dense layer whose every output has a learned scale: scale * (x @ W.T) + bias.

    Variables, asked for with flow.get_variable: "<name>-weight" of shape (units, features), "<name>-scale" of shape
    (units,), at first one, and "<name>-bias" of shape (units,), at first zero. x is a (batch, features) tensor.
    """
    raise NotImplementedError("your turn")


def keeping_std(fan_in):
    """The standard deviation of random weights that keeps the signal's size through dense layers with relu.

    fan_in is the number of inputs of each output. Half of the inputs are zero, thanks to the relu of the layer before.
    """
    raise NotImplementedError("your turn")


def layer_norm(x, gamma, beta, epsilon):
    """Layer normalisation of a matrix: each row minus its mean, over sqrt(its variance + epsilon), * gamma + beta.

    In ops, so that it can be differentiated: x.mean(dim, keepdim=True), flow.math.square, flow.math.rsqrt, + - * /.
    gamma and beta have one element for each column. The variance is the mean squared distance from the mean.
    """
    raise NotImplementedError("your turn")


def momentum_step(weight, grad, buffer, rate, momentum):
    """One step of SGD with momentum as OneFlow does it: changes the NumPy arrays weight and buffer in place.

    The buffer is what was added to the weight last time. This time it is momentum times that, and the step of plain
    gradient descent on top.
    """
    raise NotImplementedError("your turn")
