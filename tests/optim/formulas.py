"""One step of each optimizer of flow.optim, as NumPy formulas.

w: the parameter, g: its gradient, s: its state (a dict, empty at first), t = 1, 2, ...: the step of the
optimizer, o: all options. A formula returns the new w and keeps its state in s, with the names of the
optimizer's state.
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
    """Return (m, v) with bias correction."""
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


# ---- per-parameter step counts: t is the parameter's "step", not the optimizer's
def _apply_weight_decay(w, g, s, o):
    """Return (w, g, t) with weight decay in g or, decoupled, in w."""
    t = s["step"] = s.get("step", 0) + 1
    g = -g if o["maximize"] else g
    if o.get("decoupled_weight_decay"):
        return w * (1 - o["lr"] * o["weight_decay"]), g, t
    return w, g + o.get("weight_decay", 0) * w, t


def adamax(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    b1, b2 = o["betas"]
    m = s["exp_avg"] = b1 * s.get("exp_avg", 0) + (1 - b1) * g
    u = s["exp_inf"] = np.maximum(b2 * s.get("exp_inf", 0), np.abs(g) + o["eps"])
    return w - o["lr"] / (1 - b1 ** t) * m / u


def nadam(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    m, v = _moments(g, s, t, {**o, "do_bias_correction": False})
    b1, b2 = o["betas"]
    mu = [b1 * (1 - 0.96 ** (i * o["momentum_decay"]) / 2) for i in range(1, t + 2)]
    s["mu_product"] = np.prod(mu[:-1])
    step = (1 - mu[-2]) * g / (1 - np.prod(mu[:-1])) + mu[-1] * m / (1 - np.prod(mu))
    return w - o["lr"] * step / (np.sqrt(v / (1 - b2 ** t)) + o["eps"])


def radam(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    m, v = _moments(g, s, t, {**o, "do_bias_correction": False})
    (b1, b2), most = o["betas"], 2 / (1 - o["betas"][1]) - 1
    n = most - 2 * t * b2 ** t / (1 - b2 ** t)
    if n <= 5:
        return w - o["lr"] * m / (1 - b1 ** t)
    r = np.sqrt((n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n))
    return w - o["lr"] * r * m / (1 - b1 ** t) * np.sqrt(1 - b2 ** t) / (np.sqrt(v) + o["eps"])


def rprop(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    turn = g * s.get("prev", 0)
    factor = np.where(turn > 0, o["etas"][1], np.where(turn < 0, o["etas"][0], 1))
    size = s["step_size"] = np.clip(s.get("step_size", o["lr"]) * factor, *o["step_sizes"])
    g = s["prev"] = np.where(turn < 0, 0, g)
    return w - size * np.sign(g)


def asgd(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    eta, mu = s.get("eta", o["lr"]), s.get("mu", 1)
    w = w * (1 - o["lambd"] * eta) - eta * g
    s["ax"] = s.get("ax", 0) + mu * (w - s.get("ax", 0))
    s["eta"], s["mu"] = o["lr"] / (1 + o["lambd"] * o["lr"] * t) ** o["alpha"], 1 / max(1, t - o["t0"])
    return w


def ftrl(w, g, s, _, o):
    w, g, t = _apply_weight_decay(w, g, s, o)
    before, power = s.get("accumulator_value", o["initial_accumulator_value"]), -o["lr_power"]
    n = s["accumulator_value"] = before + g ** 2
    z = s["z"] = s.get("z", 0) + g - (n ** power - before ** power) / o["lr"] * w
    far = np.maximum(np.abs(z) - o["lambda1"], 0)
    return -np.sign(z) * far / ((o["beta"] + n ** power) / o["lr"] + o["lambda2"])


COMMON = {"lr": 0.001, "weight_decay": 0, "maximize": False}
MOMENTS = {**COMMON, "betas": (0.9, 0.999), "eps": 1e-8, "do_bias_correction": True}
OWN = {**COMMON, "lr": 0.002, "betas": (0.9, 0.999), "eps": 1e-8}
# name: (formula, {option: default}, {option: another value})
FORMULAS = {
    "SGD": (sgd, {**COMMON, "momentum": 0, "dampening": 0, "nesterov": False}, {"momentum": 0.8}),
    "Adam": (adam, {**MOMENTS, "amsgrad": False}, {"betas": (0.7, 0.8), "eps": 0.02, "amsgrad": True,
                                                   "do_bias_correction": False}),
    "AdamW": (adamw, {**MOMENTS, "amsgrad": False}, {"betas": (0.7, 0.8), "eps": 0.02, "amsgrad": True,
                                                     "do_bias_correction": False}),
    "LAMB": (lamb, {**MOMENTS, "adam_w_mode": True}, {"betas": (0.7, 0.8), "eps": 0.02, "adam_w_mode": False,
                                                      "do_bias_correction": False}),
    "RMSprop": (rmsprop, {**COMMON, "alpha": 0.99, "eps": 1e-8, "centered": False},
                {"alpha": 0.7, "eps": 0.03,
                 "centered": True}),
    "Adagrad": (adagrad, {**COMMON, "lr_decay": 0.0, "initial_accumulator_value": 0.0, "eps": 1e-10},
                {"lr_decay": 0.3, "initial_accumulator_value": 0.4, "eps": 0.02}),
    "Adadelta": (adadelta, {**COMMON, "lr": 1.0, "rho": 0.9, "eps": 1e-6}, {"rho": 0.6, "eps": 0.01}),
    "Adamax": (adamax, OWN, {"betas": (0.7, 0.8), "eps": 0.02}),
    "NAdam": (nadam, {**OWN, "momentum_decay": 0.004, "decoupled_weight_decay": False},
              {"betas": (0.7, 0.8), "eps": 0.02, "momentum_decay": 0.2, "decoupled_weight_decay": True}),
    "RAdam": (radam, {**OWN, "lr": 0.001, "decoupled_weight_decay": False},
              {"betas": (0.7, 0.8), "eps": 0.02, "decoupled_weight_decay": True}),
    "Rprop": (rprop, {"lr": 0.01, "maximize": False, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)},
              {"etas": (0.3, 2.0), "step_sizes": (0.01, 0.07)}),
    "ASGD": (asgd, {**COMMON, "lr": 0.01, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6},
             {"lambd": 0.1, "alpha": 0.5, "t0": 3}),
    "Ftrl": (ftrl, {**COMMON, "lr_power": -0.5, "initial_accumulator_value": 0.1, "lambda1": 0.0,
                    "lambda2": 0.0, "beta": 0.0},
             {"lr_power": -0.3, "initial_accumulator_value": 0.4, "lambda1": 0.8, "lambda2": 0.6,
              "beta": 0.7}),
}
SHARED = {"lr": 0.05, "weight_decay": 0.3, "maximize": True}
SGD_MOMENTUM = [{"momentum": 0.8, "dampening": 0.4}, {"momentum": 0.8, "nesterov": True}]


def cases() -> list:
    """Return (name, options): the defaults, every option alone, every option with weight decay, and all of
    them together.
    """
    found = []
    for name, (_, defaults, others) in FORMULAS.items():
        shared = {k: v for k, v in SHARED.items() if k in defaults}              # Rprop has no weight decay
        singles = [{k: v} for k, v in {**shared, **others}.items()] + (SGD_MOMENTUM if name == "SGD" else [])
        found += [(name, {})] + [(name, o) for o in singles]
        both = {**shared, "lr": 0.04}
        both.pop("maximize")
        found += [(name, {**both, **o}) for o in singles if not o.keys() & {"weight_decay", "lr"}]
        found.append((name, {**shared, **others}))
    return found
