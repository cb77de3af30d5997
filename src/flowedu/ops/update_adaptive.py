"""Optimizer updates with a separate learning rate for every element or parameter.

The records are defined as in core/ops/update.py.

Adam and LAMB have two versions each. In the version for job functions (_update), Adam's bias correction is
part of the learning rate, so it also scales weight decay, and LAMB stores the powers of beta1 and beta2. In
the version for tensors (_step), Adam corrects both moments, and LAMB computes its correction from the number
of the step. RMSprop is the same for both.
"""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.update import define_update
from flowedu.ops.update_sgd import momentum

register("update_adaptive")


def _norm(a: np.ndarray) -> float:
    return float(np.sqrt(np.sum(np.square(a, dtype=np.float64))))


def _moments(g: np.ndarray, m: np.ndarray, v: np.ndarray, beta1: float,
             beta2: float) -> tuple[np.ndarray, np.ndarray]:
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def _corrections(t: int, beta1: float, beta2: float, do_bias_correction: bool) -> tuple[float, float]:
    return (1 / (1 - beta1 ** t), 1 / (1 - beta2 ** t)) if do_bias_correction else (1.0, 1.0)


def _by_norms(lr: float, w: np.ndarray, step: np.ndarray) -> float:
    """LAMB's rate."""
    p, q = _norm(w), _norm(step)
    return lr * p / q if p > 0 and q > 0 else lr


# ---- of job functions
def _adam(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int, beta1: float,
          beta2: float, epsilon: float, do_bias_correction: bool) -> tuple[np.ndarray, ...]:
    m, v = _moments(g, state[0], state[1], beta1, beta2)
    if do_bias_correction:
        lr = lr * np.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    return w - lr * (m / (np.sqrt(v) + epsilon) + wd * w), m, v


def _lars(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
          momentum_beta: float, epsilon: float, lars_coefficient: float) -> tuple[np.ndarray, ...]:
    a, b = _norm(w), _norm(g)
    if a > 0 and b > 0:
        lr = lr * lars_coefficient * a / (epsilon + b + wd * a)
    return momentum(w, g, state, lr, wd, t, momentum_beta)


def _lamb(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int, beta1: float,
          beta2: float, epsilon: float) -> tuple[np.ndarray, ...]:
    # The last two: beta1 and beta2 to the power of the step's number, from 1.
    m, v, beta1_t, beta2_t = state
    m, v = _moments(g, m, v, beta1, beta2)
    a = m / (1 - float(beta1_t[0])) / (np.sqrt(v / (1 - float(beta2_t[0]))) + epsilon)
    return w - _by_norms(lr, w, a) * (a + wd * w), m, v, beta1_t * beta1, beta2_t * beta2


# ---- of both
def _rmsprop(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
             decay_rate: float, epsilon: float) -> tuple[np.ndarray, ...]:
    ms = decay_rate * state[0] + (1 - decay_rate) * g * g
    return w - lr * (g / np.sqrt(ms + epsilon) + wd * w), ms


def _rmsprop_centered(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
                      decay_rate: float, epsilon: float) -> tuple[np.ndarray, ...]:
    ms = decay_rate * state[0] + (1 - decay_rate) * g * g
    mg = decay_rate * state[1] + (1 - decay_rate) * g
    variance = np.maximum(ms - mg * mg, 0)        # rounding may take it below 0
    return w - lr * (g / np.sqrt(variance + epsilon) + wd * w), ms, mg


# ---- of tensors
def _adam_step(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
               beta1: float, beta2: float, epsilon: float,
               do_bias_correction: bool) -> tuple[np.ndarray, ...]:
    m, v = _moments(g, state[0], state[1], beta1, beta2)
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    return w - lr * (c1 * m / (np.sqrt(v) * np.sqrt(c2) + epsilon) + wd * w), m, v


def _amsgrad(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
             beta1: float, beta2: float, epsilon: float, do_bias_correction: bool) -> tuple[np.ndarray, ...]:
    m, v = _moments(g, state[0], state[1], beta1, beta2)
    top = np.maximum(state[2], v)                 # of v as it is, before its correction
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    return w - lr * (c1 * m / (np.sqrt(top) * np.sqrt(c2) + epsilon) + wd * w), m, v, top


def _adagrad(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
             lr_decay: float, epsilon: float) -> tuple[np.ndarray, ...]:
    s = state[0] + g * g
    return w - lr / (1 + (t - 1) * lr_decay) * (g / (np.sqrt(s) + epsilon) + wd * w), s


def _adadelta(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int, rho: float,
              epsilon: float) -> tuple[np.ndarray, ...]:
    square, moved = state
    square = rho * square + (1 - rho) * g * g
    delta = np.sqrt(moved + epsilon) / np.sqrt(square + epsilon) * g
    return w - lr * (delta + wd * w), square, rho * moved + (1 - rho) * delta * delta


def _lamb_step(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
               beta1: float, beta2: float, epsilon: float,
               do_bias_correction: bool) -> tuple[np.ndarray, ...]:
    m, v = _moments(g, state[0], state[1], beta1, beta2)
    c1, c2 = _corrections(t, beta1, beta2, do_bias_correction)
    a = c1 * m / (np.sqrt(v) * np.sqrt(c2) + epsilon)
    return w - _by_norms(lr, w, a) * (a + wd * w), m, v


_BETAS = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
_STEP = {**_BETAS, "do_bias_correction": True}
_THREE = "beta1 beta2 epsilon"
_SQUARE, _MEAN = "mean_square", "mean_gradient"

adam_update = define_update("adam_update", "wgmv", _adam, {**_BETAS, "do_bias_correction": False}, _THREE)
adam_step = define_update("adam_step", "wgmv", _adam_step, _STEP, _THREE)
amsgrad_step = define_update("amsgrad_step", ("w", "g", "m", "v", "max_v"), _amsgrad, _STEP, _THREE)
rmsprop_update = define_update("rmsprop_update", ("w", "g", _SQUARE), _rmsprop,
                               {"decay_rate": 0.99, "epsilon": 1e-8}, "decay_rate - epsilon")
rmsprop_centered_update = define_update("rmsprop_centered_update", ("w", "g", _SQUARE, _MEAN),
                                        _rmsprop_centered,
                                        {"decay_rate": 0.99, "epsilon": 1e-8}, "decay_rate - epsilon")
adagrad_step = define_update("adagrad_step", ("w", "g", "sum"), _adagrad, {"lr_decay": 0.0, "epsilon": 1e-10},
                             "lr_decay - epsilon")
adadelta_step = define_update("adadelta_step", ("w", "g", "square_avgs", "acc_deltas"), _adadelta,
                              {"rho": 0.9, "epsilon": 1e-6}, "rho - epsilon")
lars_update = define_update("lars_update", "wgm", _lars,
                            {"momentum_beta": 0.9, "epsilon": 1e-9, "lars_coefficient": 0.0001},
                            "momentum_beta lars_coefficient epsilon", whole=True)
lamb_update = define_update("lamb_update", ("w", "g", "m", "v", "beta1_t", "beta2_t"), _lamb,
                            {**_BETAS, "epsilon": 1e-6}, _THREE, whole=True)
lamb_step = define_update("lamb_step", "wgmv", _lamb_step, _STEP, _THREE, whole=True)
