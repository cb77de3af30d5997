"""Runs one line of text with a module (flowedu, PyTorch, or the NumPy reference) on the same inputs."""
import ast

import numpy as np

from common import flatten

from .inputs import INPUTS


def names_in(text: str) -> list[str]:
    return sorted({n.id for n in ast.walk(ast.parse(text, mode="eval"))
                   if isinstance(n, ast.Name)} & INPUTS.keys())


def variables(text: str, module, grad: bool) -> dict:
    """Return fresh leaves for the names in the text."""
    out = {}
    for name in names_in(text):
        x = module.tensor(INPUTS[name])
        if grad and INPUTS[name].dtype == np.float64:
            x.requires_grad_()
        out[name] = x
    return out


def evaluate_line(text: str, module, values: dict):
    pad = module.pad if hasattr(module, "pad") else module.nn.functional.pad
    return eval(text, {"m": module, "pad": pad, **values})


def draw_weights(results: list) -> list:
    """Return a weight for each element of each result; gradients are those of the weighted sum."""
    rng = np.random.default_rng(3)
    return [rng.standard_normal(tuple(y.shape)) for y in results]


def gradients(result, leaves: dict, module) -> dict:
    """Return d(weighted sum of all floating results)/d(leaves)."""
    total, results = None, flatten(result)
    for y, w in zip(results, draw_weights(results)):
        if y.dtype.is_floating_point and y.requires_grad:
            part = (y * module.tensor(w).to(y.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return {n: None if x.grad is None else x.grad for n, x in leaves.items() if x.requires_grad}
