"""Runs one line of text with PyTorch and with flowedu, on the same numbers."""
import numpy as np
import torch

import flowedu as flow

from .inputs import INPUTS


def names_in(text: str) -> list[str]:
    import ast
    return sorted({n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)} & INPUTS.keys())


def variables(text: str, module, grad: bool) -> dict:
    """Fresh leaves for the names in the text."""
    out = {}
    for name in names_in(text):
        x = module.tensor(INPUTS[name])
        if grad and INPUTS[name].dtype == np.float64:
            x.requires_grad_()
        out[name] = x
    return out


def flat(result) -> list:
    """The tensors of a result, nested tuples and lists opened."""
    if isinstance(result, (tuple, list)) and not isinstance(result, torch.Size):
        return [y for x in result for y in flat(x)]
    return [result]


def same(got, want, rtol=None) -> None:
    """Equal in kind, dtype, shape and value."""
    if not isinstance(want, torch.Tensor):
        assert got == want and type(got).__name__ == type(want).__name__, (got, want)
        return
    assert isinstance(got, flow.Tensor), type(got)
    assert got.dtype.name == str(want.dtype).removeprefix("torch."), (got.dtype, want.dtype)
    assert tuple(got.shape) == tuple(want.shape), (got.shape, want.shape)
    a, b = got.detach().numpy(), want.detach().numpy(force=True)
    tol = {"float16": 2e-3, "float32": 2e-5}.get(str(b.dtype), 1e-9) if rtol is None else rtol
    if b.dtype.kind == "f":
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tol, atol=tol)
    else:
        np.testing.assert_array_equal(a, b)


def run(text: str, module, values: dict):
    pad = torch.nn.functional.pad if module is torch else flow.pad
    return eval(text, {"m": module, "pad": pad, **values})


def gradients(result, leaves: dict, module) -> dict:
    """d(weighted sum of all floating results)/d(leaves)."""
    rng, total = np.random.default_rng(3), None
    for y in flat(result):
        floating = y.dtype.is_floating_point
        w = rng.standard_normal(tuple(y.shape))
        if floating and y.requires_grad:
            part = (y * module.tensor(w).to(y.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return {n: None if x.grad is None else x.grad for n, x in leaves.items() if x.requires_grad}
