"""Builds a module or function from one text with both flowedu and PyTorch, and runs it on the same inputs."""
import contextlib
import warnings

import numpy as np
import torch

import flowedu as flow

from .cases import array
from .formulas.table import flatten_results


def modules(text: str, double: bool = True):
    """Return (flowedu's, PyTorch's) module of a text like "nn.Linear(3, 2)", with equal parameters and
    buffers.
    """
    theirs = eval(text, {"nn": torch.nn})
    ours = eval(text, {"nn": flow.nn})
    if double:
        theirs, ours = theirs.double(), ours.double()
    # initial values are random in both
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            p.copy_(torch.from_numpy(np.random.default_rng(len(name) + p.numel()).normal(0, 0.4,
                                                                                         tuple(p.shape))))
    state = {k: flow.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()}
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    return ours, theirs


def make_input_pairs(specs, seed: int = 0):
    """Return (flowedu, PyTorch) inputs; floats require gradients."""
    ours, theirs = [], []
    for i, spec in enumerate(specs):
        a = array(spec, seed + i)
        f, t = flow.tensor(a), torch.tensor(a)
        if a.dtype.kind == "f":
            f.requires_grad, t.requires_grad = True, True
        ours.append(f)
        theirs.append(t)
    return ours, theirs


def assert_same_as_torch(got, want, what, tol=1e-8):
    want = want.detach().numpy() if isinstance(want, torch.Tensor) else want
    assert tuple(got.shape) == tuple(
        want.shape), f"{what}: shape {tuple(got.shape)}, PyTorch {tuple(want.shape)}"
    got = got.detach().numpy()
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, PyTorch {want.dtype}"
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol, err_msg=what)


def backward(ours, theirs, what, tol=1e-8):
    """Compare the results, then run backward through all of them with the same random weights."""
    ys, zs = flatten_results(ours), flatten_results(theirs)
    assert len(ys) == len(zs), what
    loss, peer = None, None
    for i, (y, z) in enumerate(zip(ys, zs)):
        assert_same_as_torch(y, z, f"{what}: result {i}", tol)
        assert y.requires_grad == z.requires_grad, f"{what}: result {i} requires_grad"
        if z.requires_grad:
            g = np.random.default_rng(i + 99).normal(size=tuple(z.shape)).astype(z.detach().numpy().dtype)
            a, b = (y * flow.tensor(g)).sum(), (z * torch.tensor(g)).sum()
            loss, peer = (a, b) if loss is None else (loss + a, peer + b)
    if peer is not None:
        loss.backward()
        peer.backward()


def same_gradients(pairs, what, tol=1e-8):
    """Compare pairs of (name, flowedu, PyTorch)."""
    for name, f, t in pairs:
        if t.grad is None:
            assert f.grad is None or not np.abs(f.grad.numpy()).max(initial=0), f"{what}: gradient of {name}"
        elif f.grad is None:
            assert not t.grad.any(), f"{what}: no gradient of {name}"
        else:
            assert_same_as_torch(f.grad, t.grad, f"{what}: gradient of {name}", tol)


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_module(text: str, *specs, call="m(*xs)", tol=1e-8, train=True, seed=0):
    """Compare forward, all gradients, and the state afterwards."""
    with quiet():
        ours, theirs = modules(text)
        ours.train(train)
        theirs.train(train)
        xs, ts = make_input_pairs(specs, seed)
        y, z = (eval(call, {"m": ours, "xs": xs, "flow": flow}), eval(call,
                                                                      {"m": theirs, "xs": ts, "flow": torch}))
        backward(y, z, text, tol)
    named = dict(theirs.named_parameters())
    same_gradients([(n, p, named[n]) for n, p in ours.named_parameters()], text, tol)
    same_gradients([(f"input {i}", f, t) for i, (f, t) in enumerate(zip(xs, ts))], text, tol)
    want = theirs.state_dict()
    got = ours.state_dict()
    assert list(got) == list(want), text
    for key, value in want.items():
        assert_same_as_torch(got[key], value, f"{text}: {key} afterwards", tol)


def check_function(text: str, *specs, tol=1e-8, seed=0):
    """Compare F.something(*xs), written as text with x, y, z ... for the inputs."""
    with quiet():
        xs, ts = make_input_pairs(specs, seed)
        names = "xyzuvw"
        y = eval(text, {"F": flow.nn.functional, "flow": flow, **dict(zip(names, xs))})
        z = eval(text, {"F": torch.nn.functional, "flow": torch, **dict(zip(names, ts))})
        backward(y, z, text, tol)
    same_gradients([(names[i], f, t) for i, (f, t) in enumerate(zip(xs, ts))], text, tol)
