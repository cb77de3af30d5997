"""What one step of each optimizer of flow.optim does to a parameter, in NumPy.

w: the parameter, g: its gradient, s: what is remembered about it (a dict, empty at first), t = 1, 2, ...: the step of the
optimizer, o: the options, all of them. A formula returns the new w and keeps its memory in s under the names of the state.
"""
import numpy as np


def _gradient(w, g, o, decay=True):
    g = -g if o["maximize"] else g
    return g + o["weight_decay"] * w if decay else g


def sgd(w, g, s, t, o):
    g = _gradient(w, g, o)
    if not o["momentum"]:
        return w - o["lr"] * g
    b = s["momentum_buf"] = o["momentum"] * s.get("momentum_buf", 0) + (1 - o["dampening"]) * g
    return w - o["lr"] * (g + o["momentum"] * b if o["nesterov"] else b)


def _moments(g, s, t, o):
    """(m, v) with their biases corrected."""
    b1, b2 = o["betas"]
    m = s["exp_avg"] = b1 * s.get("exp_avg", 0) + (1 - b1) * g
    v = s["exp_avg_sq"] = b2 * s.get("exp_avg_sq", 0) + (1 - b2) * g ** 2
    if o.get("amsgrad"):
        v = s["max_exp_avg_sq"] = np.maximum(s.get("max_exp_avg_sq", 0), v)
    return (m / (1 - b1 ** t), v / (1 - b2 ** t)) if o["do_bias_correction"] else (m, v)


def adam(w, g, s, t, o):
    m, v = _moments(_gradient(w, g, o), s, t, o)
    return w - o["lr"] * m / (np.sqrt(v) + o["eps"])


def adamw(w, g, s, t, o):
    m, v = _moments(_gradient(w, g, o, decay=False), s, t, o)
    return w - o["lr"] * (m / (np.sqrt(v) + o["eps"]) + o["weight_decay"] * w)


def lamb(w, g, s, t, o):
    m, v = _moments(_gradient(w, g, o, decay=not o["adam_w_mode"]), s, t, o)
    a = m / (np.sqrt(v) + o["eps"])
    step = a + o["weight_decay"] * w if o["adam_w_mode"] else a
    sizes = np.linalg.norm(w), np.linalg.norm(a)
    return w - o["lr"] * (sizes[0] / sizes[1] if all(sizes) else 1) * step


def rmsprop(w, g, s, t, o):
    g = _gradient(w, g, o)
    v = s["square_avg"] = o["alpha"] * s.get("square_avg", 0) + (1 - o["alpha"]) * g ** 2
    if o["centered"]:
        a = s["grad_avg"] = o["alpha"] * s.get("grad_avg", 0) + (1 - o["alpha"]) * g
        v = v - a ** 2
    return w - o["lr"] * g / np.sqrt(v + o["eps"])


def adagrad(w, g, s, t, o):
    g = _gradient(w, g, o)
    v = s["sum"] = s.get("sum", o["initial_accumulator_value"]) + g ** 2
    return w - o["lr"] / (1 + (t - 1) * o["lr_decay"]) * g / (np.sqrt(v) + o["eps"])


def adadelta(w, g, s, t, o):
    g = _gradient(w, g, o)
    v = s["square_avgs"] = o["rho"] * s.get("square_avgs", 0) + (1 - o["rho"]) * g ** 2
    d = np.sqrt(s.get("acc_deltas", 0) + o["eps"]) / np.sqrt(v + o["eps"]) * g
    s["acc_deltas"] = o["rho"] * s.get("acc_deltas", 0) + (1 - o["rho"]) * d ** 2
    return w - o["lr"] * d


COMMON = {"lr": 0.001, "weight_decay": 0, "maximize": False}
MOMENTS = {**COMMON, "betas": (0.9, 0.999), "eps": 1e-8, "do_bias_correction": True}
# name: (formula, {option: default}, {option: another value})
FORMULAS = {
    "SGD": (sgd, {**COMMON, "momentum": 0, "dampening": 0, "nesterov": False}, {"momentum": 0.8}),
    "Adam": (adam, {**MOMENTS, "amsgrad": False}, {"betas": (0.7, 0.8), "eps": 0.02, "amsgrad": True,
                                                   "do_bias_correction": False}),
    "AdamW": (adamw, {**MOMENTS, "amsgrad": False}, {"betas": (0.7, 0.8), "eps": 0.02, "amsgrad": True,
                                                     "do_bias_correction": False}),
    "LAMB": (lamb, {**MOMENTS, "adam_w_mode": True}, {"betas": (0.7, 0.8), "eps": 0.02, "adam_w_mode": False,
                                                      "do_bias_correction": False}),
    "RMSprop": (rmsprop, {**COMMON, "alpha": 0.99, "eps": 1e-8, "centered": False}, {"alpha": 0.7, "eps": 0.03,
                                                                                     "centered": True}),
    "Adagrad": (adagrad, {**COMMON, "lr_decay": 0.0, "initial_accumulator_value": 0.0, "eps": 1e-10},
                {"lr_decay": 0.3, "initial_accumulator_value": 0.4, "eps": 0.02}),
    "Adadelta": (adadelta, {**COMMON, "lr": 1.0, "rho": 0.9, "eps": 1e-6}, {"rho": 0.6, "eps": 0.01}),
}
SHARED = {"lr": 0.05, "weight_decay": 0.3, "maximize": True}
SGD_MOMENTUM = [{"momentum": 0.8, "dampening": 0.4}, {"momentum": 0.8, "nesterov": True}]


def cases() -> list:
    """(name, options): the defaults, every option alone, every option with weight decay, and all of them together."""
    found = []
    for name, (_, _, others) in FORMULAS.items():
        singles = [{k: v} for k, v in {**SHARED, **others}.items()] + (SGD_MOMENTUM if name == "SGD" else [])
        found += [(name, {})] + [(name, o) for o in singles]
        found += [(name, {"weight_decay": 0.3, "lr": 0.04, **o}) for o in singles if not o.keys() & {"weight_decay", "lr"}]
        found.append((name, {**SHARED, **others}))
    return found
