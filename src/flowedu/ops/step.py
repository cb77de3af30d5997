"""Optimizer updates of flow.optim: what `optimizer.step()` does to every parameter. Records as in ops/update.py.

The rules of flow.optimizer (job functions) have other formulas for the same names, hence two sets: here momentum does not
contain the learning rate, Adam corrects both moments, and LAMB's correction follows from the number of the step. SGD
without momentum and RMSprop are the same in both: sgd_update, rmsprop_update and rmsprop_centered_update.

PyTorch's weight decay is `l2` here, AdamW's is `weight_decay`; maximize=True is scale=-1.
"""
from __future__ import annotations

import numpy as np

from flowedu.ops.update import define_update, norm


def _momentum(w, g, state, lr, wd, t, beta, dampening, nesterov):
    m = beta * state[0] + (1 - dampening) * g       # dampening from the first step on, as OneFlow
    return w - lr * ((g + beta * m if nesterov else m) + wd * w), m


def _moments(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def _corrections(t, beta1, beta2, do_bias_correction):
    return (1 / (1 - beta1 ** t), 1 / (1 - beta2 ** t)) if do_bias_correction else (1.0, 1.0)


def _adam(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m, v = _moments(g, *state, beta1, beta2)
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    return w - lr * (c1 * m / (np.sqrt(v) * np.sqrt(c2) + epsilon) + wd * w), m, v


def _amsgrad(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m, v = _moments(g, *state[:2], beta1, beta2)
    top = np.maximum(state[2], v)                   # of v as it is, before its correction
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    return w - lr * (c1 * m / (np.sqrt(top) * np.sqrt(c2) + epsilon) + wd * w), m, v, top


def _adagrad(w, g, state, lr, wd, t, lr_decay, epsilon):
    s = state[0] + g * g
    return w - lr / (1 + (t - 1) * lr_decay) * (g / (np.sqrt(s) + epsilon) + wd * w), s


def _adadelta(w, g, state, lr, wd, t, rho, epsilon):
    square, moved = state
    square = rho * square + (1 - rho) * g * g
    delta = np.sqrt(moved + epsilon) / np.sqrt(square + epsilon) * g
    return w - lr * (delta + wd * w), square, rho * moved + (1 - rho) * delta * delta


def _lamb(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m, v = _moments(g, *state, beta1, beta2)
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    a = c1 * m / (np.sqrt(v) * np.sqrt(c2) + epsilon)
    p, q = norm(w), norm(a)
    if p > 0 and q > 0:
        lr = lr * p / q
    return w - lr * (a + wd * w), m, v


def _three(beta1, beta2, epsilon):
    return beta1, beta2, epsilon


_ADAM, _CORRECT = ", beta1=0.9, beta2=0.999, epsilon=1e-8", ", do_bias_correction=True"

momentum_step = define_update("momentum_step", "wgm", _momentum, ", beta=0.9, dampening=0.0",
                              lambda beta, dampening: (beta, dampening, 0.0), ", nesterov=False")
adam_step = define_update("adam_step", "wgmv", _adam, _ADAM, _three, _CORRECT)
amsgrad_step = define_update("amsgrad_step", ("w", "g", "m", "v", "max_v"), _amsgrad, _ADAM, _three, _CORRECT)
adagrad_step = define_update("adagrad_step", ("w", "g", "sum"), _adagrad, ", lr_decay=0.0, epsilon=1e-10",
                             lambda lr_decay, epsilon: (lr_decay, 0.0, epsilon))
adadelta_step = define_update("adadelta_step", ("w", "g", "square_avgs", "acc_deltas"), _adadelta,
                              ", rho=0.9, epsilon=1e-6", lambda rho, epsilon: (rho, 0.0, epsilon))
lamb_step = define_update("lamb_step", "wgmv", _lamb, _ADAM, _three, _CORRECT, whole=True)
