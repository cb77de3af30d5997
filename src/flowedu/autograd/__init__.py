"""Gradients. `reverse` is the walk; `tape` the same walk over eager calls; the rest is what users call, as
`flow.autograd.grad`, `flow.autograd.Function` and so on (see PUBLIC)."""
import importlib

PUBLIC = {
    "flowedu.tensor.autograd": {"grad": "grad", "backward": "backward_all"},
    "flowedu.tensor.modes": {n: n for n in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode",
                                            "is_grad_enabled", "is_inference_mode_enabled")},
    "flowedu.autograd.function": {"Function": "Function", "function": ""},
    "flowedu.autograd.functional": {"functional": ""},
    "flowedu.autograd.gradcheck": {"gradcheck": "gradcheck", "gradgradcheck": "gradgradcheck",
                                   "GradcheckError": "GradcheckError"},
    "flowedu.autograd.graph": {"graph": ""},
    "flowedu.autograd.anomaly": {"set_detect_anomaly": "set_detect_anomaly", "detect_anomaly": "detect_anomaly",
                                 "is_anomaly_enabled": "is_anomaly_enabled"},
}
_WHERE = {name: (module, there) for module, names in PUBLIC.items() for name, there in names.items()}
__all__ = sorted(_WHERE)


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module 'flowedu.autograd' has no attribute {name!r}")
    module, there = _WHERE[name]
    found = importlib.import_module(module)
    globals()[name] = found = getattr(found, there) if there else found
    return found


def __dir__():
    return sorted(set(globals()) | set(_WHERE))
