"""The optimizer that a function_config describes by `config.train.*`, as in OneFlow before 0.2.

flow.losses.add_loss uses it.

    config.train.primary_lr(0.1)
    config.train.model_update_conf({"momentum_conf": {"beta": 0.9}, "learning_rate_decay": {"cosine_conf":
                                    {"decay_batches": 1000}}, "warmup_conf": {"linear_conf": {...}}})

The dictionaries have the names, and the defaults, of OneFlow's job_conf.proto.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.optim import schedule, warmup
from flowedu.oneflow04.optim.clipping import by_global_norm
from flowedu.oneflow04.optim.optimizers import LAMB, LARS, SGD, Adam, LazyAdam, Optimizer, RMSProp
from flowedu.oneflow04.optim.weight_decay import WeightDecay

REQUIRED = object()

# {name of the rule: (constructor, {parameter: default})}
RULES: dict[str, tuple[Callable, dict]] = {
    "naive_conf": (lambda lr, **options: SGD(lr, momentum=0, **options), {}),
    "momentum_conf": (lambda lr, beta, **options: SGD(lr, momentum=beta, **options), {"beta": 0.9}),
    "rmsprop_conf": (RMSProp, {"decay_rate": 0.99, "epsilon": 1e-8, "centered": False}),
    "lars_conf": (LARS, {"momentum_beta": 0.9, "epsilon": 1e-9, "lars_coefficient": 0.0001}),
    "adam_conf": (Adam, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "do_bias_correction": False}),
    "lazy_adam_conf": (LazyAdam, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "lamb_conf": (LAMB, {"beta1": REQUIRED, "beta2": REQUIRED, "epsilon": REQUIRED}),
}
OTHERS = ("learning_rate_decay", "warmup_conf", "clip_conf", "weight_decay_conf")

_STEPWISE = {"decay_batches": REQUIRED, "decay_rate": REQUIRED, "staircase": False}
DECAYS: dict[str, tuple[Callable, dict]] = {
    "exponential_conf": (schedule.ExponentialScheduler, _STEPWISE),
    "inverse_time_conf": (schedule.InverseTimeScheduler, _STEPWISE),
    "natural_exp_conf": (schedule.NaturalExpScheduler, _STEPWISE),
    "piecewise_constant_conf": (lambda lr, boundaries, values, warmup: schedule.PiecewiseConstantScheduler(
        boundaries, values, warmup), {"boundaries": (), "values": REQUIRED}),
    "polynomial_conf": (schedule.PolynomialScheduler, {"decay_batches": REQUIRED, "end_learning_rate": 0.0001,
                                                       "power": 1.0, "cycle": False}),
    "cosine_conf": (schedule.CosineScheduler, {"decay_batches": REQUIRED, "alpha": 0.0}),
    "linear_cosine_conf": (schedule.LinearCosineScheduler, {"decay_batches": REQUIRED, "num_periods": 0.5,
                                                            "alpha": 0.0, "beta": 0.001}),
    "piecewise_scaling_conf": (schedule.PiecewiseScalingScheduler, {"boundaries": (), "scales": REQUIRED}),
}
WARMUPS: dict[str, tuple[Callable, dict]] = {
    "constant_conf": (warmup.constant, {"warmup_batches": REQUIRED, "multiplier": REQUIRED}),
    "linear_conf": (warmup.linear, {"warmup_batches": REQUIRED, "start_multiplier": REQUIRED}),
}
CLIPS: dict[str, tuple[Callable, dict]] = {"clip_by_global_norm": (by_global_norm, {"clip_norm": REQUIRED})}
OURS = {"decay_batches": "steps", "scales": "scale"}       # parameters with other names in the schedulers


def optimizer_from_conf(values: Mapping[str, Any]) -> Optimizer:
    """Return the optimizer that the settings of a FunctionConfig describe.

    Args:
        values: {"train.primary_lr": x, "train.secondary_lr": x (for variables with model_name "bias";
            default: the same), "train.model_update_conf": {...}, "train.loss_scale_factor": s}; other
            settings are ignored.

    Raises:
        CheckError: a setting is missing, unknown, or given twice.
        ArgumentError: a value is out of range.
    """
    lr, conf = values.get("train.primary_lr"), values.get("train.model_update_conf")
    if lr is None or conf is None:
        lacks = "primary_lr" if lr is None else "model_update_conf"
        raise CheckError(f"losses.add_loss: config.train.{lacks} is not set",
                         expected="primary_lr and model_update_conf",
                         got=", ".join(k for k in values if k.startswith("train.")) or "neither", at="",
                         fix='config.train.primary_lr(0.1); config.train.model_update_conf({"naive_conf": '
                         '{}}); and pass '
                             "config to @flow.global_function(\"train\", config)")
    what = "train.model_update_conf"
    _check_keys(what, conf, (*RULES, *OTHERS))
    make, options = _choice(what, {k: v for k, v in conf.items() if k not in OTHERS}, RULES)
    if "clip_conf" in conf:
        rule, given = _choice(f"{what}: clip_conf", conf["clip_conf"], CLIPS)
        options["grad_clipping"] = rule(**given)
    optimizer = make(_scheduler(what, lr, conf), loss_scale_factor=values.get("train.loss_scale_factor"),
                     **options)
    second = values.get("train.secondary_lr")
    if second is not None and second != lr:
        optimizer.secondary = _scheduler(what, second, conf)
    if "weight_decay_conf" in conf:
        optimizer.decay = _decay(f"{what}: weight_decay_conf", conf["weight_decay_conf"])
    return optimizer


def _scheduler(what: str, lr: float, conf: Mapping) -> schedule.LrScheduler:
    warm = None
    if "warmup_conf" in conf:
        rule, given = _choice(f"{what}: warmup_conf", conf["warmup_conf"], WARMUPS)
        warm = rule(*given.values())
    if "learning_rate_decay" not in conf:
        return schedule.PiecewiseConstantScheduler([], [lr], warm)
    rule, given = _choice(f"{what}: learning_rate_decay", conf["learning_rate_decay"], DECAYS)
    made = rule(lr, warmup=warm, **{OURS.get(k, k): v for k, v in given.items()})
    # warm-up always uses this rate
    made.base_lr = warmup.number("train", "primary_lr or secondary_lr", lr)
    return made


def _decay(what: str, conf: Any) -> WeightDecay:
    _check_keys(what, conf, ("weight_decay_rate", "includes", "excludes"))
    patterns = {}
    for side in ("includes", "excludes"):
        if side in conf:
            _check_keys(f"{what}: {side}", conf[side], ("pattern",))
            patterns[side] = conf[side].get("pattern", [])
    if "weight_decay_rate" not in conf:
        raise CheckError(f"{what}: weight_decay_rate is missing", expected='{"weight_decay_rate": 0.0005}',
                         got=repr(conf), fix="add it", at="")
    return WeightDecay(what, conf["weight_decay_rate"], **patterns)


def _check_keys(what: str, conf: Any, names: tuple[str, ...]) -> None:
    """Raise CheckError unless `conf` is a dictionary with keys from `names` only."""
    if not isinstance(conf, Mapping):
        raise CheckError(f"{what}: not a dictionary", expected="keys " + ", ".join(names), got=repr(conf),
                         fix=f"write {{{names[0]!r}: ...}}", at="")
    unknown = [k for k in conf if k not in names]
    if unknown == ["global_norm"]:
        raise UnsupportedError(f"{what}: global_norm is given",
                               expected="clip_norm alone: the norm is computed",
                               got=repr(conf), fix="leave global_norm out", at="")
    if unknown:
        raise CheckError(f"{what}: unknown {', '.join(map(repr, unknown))}", expected=", ".join(names)
                         or "{}", got=repr(conf), fix="correct the name", at="")


def _choice(what: str, conf: Any, table: Mapping[str, tuple[Callable, dict]]) -> tuple[Callable, dict]:
    """Return the constructor of the entry that `conf` names, and its parameters in the table's order."""
    _check_keys(what, conf, tuple(table))
    if len(conf) != 1:
        raise CheckError(f"{what}: one of its kinds", expected=" or ".join(table), got=repr(conf),
                         fix=f"write {{{next(iter(table))!r}: {{...}}}}", at="")
    (kind, given), = conf.items()
    make, defaults = table[kind]
    _check_keys(f"{what}: {kind}", given, tuple(defaults))
    missing = [k for k, v in defaults.items() if v is REQUIRED and k not in given]
    if missing:
        raise CheckError(f"{what}: {kind} lacks {', '.join(missing)}", expected=", ".join(defaults),
                         got=repr(given), fix="add " + ", ".join(f"{m!r}: ..." for m in missing), at="")
    return make, {**defaults, **given}
