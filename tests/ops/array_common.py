"""Helpers for the tests of array, math, and loss functions: run the same function eagerly and as a job."""
import numpy as np

import flowedu as flow
from common import constant, constant_rate, run


def run_checked_job(f, *arrays, **options):
    """Call f on these arrays eagerly and as a job, compare both, and return the result of the job."""
    eager = f(*[flow.tensor(a) for a in arrays]).numpy()
    compiled = run(f, *arrays, **options)
    assert eager.dtype == compiled.dtype and eager.shape == compiled.shape
    np.testing.assert_allclose(compiled, eager, rtol=1e-6, atol=1e-6)
    return compiled


def gradients(f, *arrays, learn=None):
    """Return (w, gradients of sum(f(...) * w) for the arrays numbered in `learn`; default: all float arrays).
    A training job must compute the same gradient for the first one.
    """
    learn = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"] if learn is None else learn
    ts = [flow.tensor(a, requires_grad=i in learn) for i, a in enumerate(arrays)]
    y = f(*ts)
    weights = np.cos(np.arange(y.numel())).reshape(y.shape).astype(y.dtype.numpy)
    (y * flow.tensor(weights)).sum().backward()
    found = [ts[i].grad.numpy() for i in learn]
    np.testing.assert_allclose(job_gradient(f, weights, *arrays), found[0], rtol=1e-4, atol=1e-5)
    return weights, found


def job_gradient(f, weights, first, *rest):
    seen = []

    def body(*blobs):
        v = flow.get_variable("v", first.shape, flow.core.values.dtype.as_dtype(first.dtype), constant(first))
        loss = f(v, *blobs[1:])
        loss = flow.math.multiply(loss, blobs[0])
        flow.optimizer.SGD(constant_rate(0.0), momentum=0).minimize(loss)
        flow.watch_diff(v, lambda g: seen.append(np.array(g.numpy())))
        return loss

    run(body, weights, *rest, type="train")
    return seen[0]


def weighted(weights, y):
    """Compute the same weighted sum in NumPy or PyTorch."""
    return (y * weights).sum()
