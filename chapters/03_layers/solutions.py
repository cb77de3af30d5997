"""Answers to the exercises of chapter 3."""
import math

import flowedu as flow


def same_pads(size, kernel, stride, lower):
    windows = -(-size // stride)
    need = max((windows - 1) * stride + kernel - size, 0)
    small, large = need // 2, need - need // 2
    return (large, small) if lower else (small, large)


def moving_mean(start, batch_mean, momentum, steps):
    # The distance to batch_mean shrinks by the factor `momentum` at every step.
    return batch_mean + (start - batch_mean) * momentum ** steps


def scaled_dense(x, units, name, kernel_initializer):
    w = flow.get_variable(f"{name}-weight", (units, x.shape[1]), initializer=kernel_initializer)
    scale = flow.get_variable(f"{name}-scale", (units,), initializer=flow.ones_initializer())
    b = flow.get_variable(f"{name}-bias", (units,), initializer=flow.zeros_initializer())
    return flow.matmul(x, w, transpose_b=True) * scale + b


def keeping_std(fan_in):
    # A sum of fan_in products; the mean square of an input is half of what it was before relu.
    return math.sqrt(2 / fan_in)


def layer_norm(x, gamma, beta, epsilon):
    centred = x - x.mean(1, keepdim=True)
    variance = flow.math.square(centred).mean(1, keepdim=True)
    return centred * flow.math.rsqrt(variance + epsilon) * gamma + beta


def momentum_step(weight, grad, buffer, rate, momentum):
    buffer *= momentum
    buffer -= rate * grad
    weight += buffer
