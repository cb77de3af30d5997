"""Initializers in the form of dictionaries, as in OneFlow's configuration files.

For example `config.default_initializer_conf({"random_normal_conf": {"mean": 0.0, "std": 0.01}})`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

from flowedu.core.values.dtype import int32
from flowedu.errors import CheckError
from flowedu.oneflow04 import initializers as make

# {name: ({parameter: default}, function of the parameters)}. fan_in: OneFlow's default of variance_norm.
_FANS = {"kFanIn": "fan_in", "kFanOut": "fan_out", "kAverage": "fan_avg", 0: "fan_in", 1: "fan_out",
         2: "fan_avg"}
_DRAWS = {"kTruncatedNormal": "truncated_normal", "kRandomNormal": "random_normal",
          "kRandomUniform": "random_uniform", 0: "truncated_normal", 1: "random_normal", 2: "random_uniform"}
_FAN = {"variance_norm": "kFanIn", "data_format": ""}
_CONFS: dict[str, tuple[dict, Callable]] = {
    "constant_conf": ({"value": 0.0}, make.constant_initializer),
    "constant_int_conf": ({"value": 0}, lambda value: make.constant_initializer(value, int32)),
    "random_uniform_conf": ({"min": 0.0, "max": 1.0},
                            lambda min, max: make.random_uniform_initializer(min, max)),
    "random_uniform_int_conf": ({"min": 0, "max": 1},
                                lambda min, max: make.random_uniform_initializer(min, max, int32)),
    "random_normal_conf": ({"mean": 0.0, "std": 1.0},
                           lambda mean, std: make.random_normal_initializer(mean, std)),
    "truncated_normal_conf": ({"mean": 0.0, "std": 1.0}, make.truncated_normal_initializer),
    "xavier_conf": (_FAN, lambda norm, form: make.variance_scaling_initializer(1.0, norm, "random_uniform",
                                                                               form)),
    "msra_conf": (_FAN, lambda norm, form: make.variance_scaling_initializer(2.0, norm, "random_normal",
                                                                             form)),
    "variance_scaling_conf": ({"scale": 1.0, "distribution": "kTruncatedNormal", **_FAN},
                              lambda scale, draw, norm, form: make.variance_scaling_initializer(scale, norm,
                                                                                                draw, form)),
    "empty_conf": ({}, make.empty_initializer),
}


def initializer_of(conf: Mapping | Callable) -> Callable:
    """Return the initializer that a dictionary describes. Return an initializer unchanged."""
    if callable(conf):
        return conf
    if not isinstance(conf, Mapping) or len(conf) != 1 or next(iter(conf)) not in _CONFS:
        raise CheckError("default_initializer_conf: not an initializer", got=repr(conf),
                         expected="an initializer, or "
                         '{"random_normal_conf": {"mean": 0.0, "std": 0.01}} and the like: '
                         + ", ".join(_CONFS),
                         fix="default_initializer_conf(flow.random_normal_initializer(0.0, 0.01))")
    [(name, given)] = conf.items()
    defaults, function = _CONFS[name]
    if not isinstance(given, Mapping) or not set(given) <= set(defaults):
        raise CheckError(f"default_initializer_conf: {name} has no such parameters",
                         expected=f"some of {defaults}", got=repr(given), fix=f'{{"{name}": {defaults}}}')
    values = [_word(name, key, given.get(key, default)) for key, default in defaults.items()]
    return function(*values)


def _word(name: str, key: str, value):
    """Replace OneFlow's names for kinds of fan and distribution in a parameter's value by flowedu's."""
    words = {"variance_norm": _FANS, "distribution": _DRAWS}.get(key)
    if words is None:
        return value
    if not isinstance(value, (str, int)) or value not in words:
        raise CheckError(f"default_initializer_conf: {name} has no {key} of that name", got=repr(value),
                         expected=", ".join(w for w in words if isinstance(w, str)),
                         fix=f"{key}={next(iter(words))!r}")
    return words[value]
