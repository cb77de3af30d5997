"""Optimizer updates: SGD with momentum. The records are defined as in core/ops/update.py.

Records named _update are for job functions (flow.optimizer). Records named _step are for tensors
(flow.optim); their momentum does not contain the learning rate. SGD without momentum is the same for both.
"""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.update import define_update

register("update_sgd")                            # also sgd_update: one pass over all parameters


def momentum(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
             beta: float) -> tuple[np.ndarray, ...]:
    m = beta * state[0] - lr * g                  # OneFlow 0.4 keeps the learning rate inside m
    return w + m - lr * wd * w, m


def _dampened(w: np.ndarray, g: np.ndarray, state: list[np.ndarray], lr: float, wd: float, t: int,
              beta: float, dampening: float, nesterov: bool) -> tuple[np.ndarray, ...]:
    m = beta * state[0] + (1 - dampening) * g     # dampening from the first step on, as OneFlow
    return w - lr * ((g + beta * m if nesterov else m) + wd * w), m


momentum_update = define_update("momentum_update", "wgm", momentum, {"beta": 0.9}, "beta")
momentum_step = define_update("momentum_step", "wgm", _dampened, {"beta": 0.9, "dampening": 0.0,
                                                                  "nesterov": False},
                              "beta dampening")
