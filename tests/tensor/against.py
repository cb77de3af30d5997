"""Comparison of flowedu results with PyTorch results."""
import numpy as np
import torch

import flowedu as flow


def assert_same_as_torch(got, want, rtol=None) -> None:
    """Assert equal kind, dtype, shape, and value."""
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
