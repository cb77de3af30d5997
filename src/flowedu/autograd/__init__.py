"""Gradient functions, used as `flow.autograd.grad`, `flow.autograd.Function`, and so on.

core/ops/reverse.py contains the backward traversal, and core/grad/tape.pyx the same traversal over eager
calls. The modules of this folder are the public API.
"""
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {
    "grad": "flowedu.tensor.gradients.backward", "backward": "flowedu.tensor.gradients.backward:backward_all",
    **dict.fromkeys(("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled",
                     "is_inference_mode_enabled"), "flowedu.tensor.gradients.grad_mode"),
    "Variable": "flowedu.autograd.variable",
    "Function": "flowedu.autograd.function", "function": "flowedu.autograd.function",
    "functional": "flowedu.autograd.functional", "graph": "flowedu.autograd.graph",
    **dict.fromkeys(("set_detect_anomaly", "detect_anomaly", "is_anomaly_enabled"),
                    "flowedu.autograd.anomaly"),
})
# imported at once: importing a submodule binds its name here, and this submodule has the name of its function
from flowedu.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402, F401

__all__ = [name for name in __dir__() if not name.startswith("_") and name != "later"]
