"""Random programs of views, in-place writes, and ordinary ops, run on both flowedu and PyTorch."""
import numpy as np
from hypothesis import strategies as st

import flowedu as flow

VIEWS = {
    "first": lambda x: x[0] if x.ndim and x.shape[0] else None,
    "tail": lambda x: x[1:] if x.ndim else None,
    "odd": lambda x: x[1::2] if x.ndim else None,
    "column": lambda x: x[..., 0] if x.ndim > 1 and x.shape[-1] else None,
    "swap": lambda x: x.transpose(0, 1) if x.ndim > 1 else None,
    "flat": lambda x: x.view(-1) if x.is_contiguous() and x.ndim != 1 else None,
    "more": lambda x: x.unsqueeze(0) if x.ndim < 4 else None,
    "fewer": lambda x: x.squeeze(0) if x.ndim and x.shape[0] == 1 else None,
    "half": lambda x: x.narrow(0, 0, x.shape[0] // 2) if x.ndim and x.shape[0] else None,
    "detach": lambda x: x.detach(),
}
WRITES = {
    "add_": lambda x, y: x.add_(y), "sub_": lambda x, y: x.sub_(y), "mul_": lambda x, y: x.mul_(y),
    "div_": lambda x, y: x.div_(y * 0 + 2), "neg_": lambda x, y: x.neg_(), "zero_": lambda x, y: x.zero_(),
    "fill_": lambda x, y: x.fill_(1.5), "exp_": lambda x, y: x.clamp_(-2, 2).exp_(),
    "relu_": lambda x, y: x.relu_(),
    "copy_": lambda x, y: x.copy_(y), "tanh_": lambda x, y: x.tanh_(), "sigmoid_": lambda x, y: x.sigmoid_(),
    "square_": lambda x, y: x.clamp_(-2, 2).square_(), "number": lambda x, y: x.mul_(0.5),
    "set": lambda x, y: x.__setitem__(0, 0.25) if x.ndim and x.shape[0] else None,
    "set_part": lambda x, y: x.__setitem__(slice(1, None), y) if x.ndim else None,
    "iadd": lambda x, y: x.__iadd__(y), "itself": lambda x, y: x.mul_(x), "abs_": lambda x, y: x.abs_(),
}
OPS = {"mul": lambda x, y: x * y, "add": lambda x, y: x + y, "tanh": lambda x, y: x.tanh(),
       "clone": lambda x, y: x.clone(),
       "scale": lambda x, y: x * 0.5, "sigmoid": lambda x, y: x.sigmoid(), "frozen": None}

step = st.one_of(st.tuples(st.just("view"), st.sampled_from(sorted(VIEWS)), st.integers(0, 99), st.just(0)),
                 st.tuples(st.just("write"), st.sampled_from(sorted(WRITES)), st.integers(0, 99),
                           st.integers(0, 99)),
                 st.tuples(st.just("op"), st.sampled_from(sorted(OPS)), st.integers(0, 99),
                           st.integers(0, 99)),
                 st.tuples(st.just("frozen"), st.sampled_from(sorted(WRITES)), st.integers(0, 99),
                           st.integers(0, 99)))
programs = st.tuples(st.lists(step, min_size=2, max_size=14), st.integers(0, 2 ** 31))


def draw_program_inputs(seed: int) -> list:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, s) for s in ((2, 3), (3,), (2, 3), (4, 2, 3))]


def start(lib, seed: int, make):
    """Return two leaves that require gradients, and two plain tensors."""
    found = [make(a) for a in draw_program_inputs(seed)]
    for t in found[:2]:
        t.requires_grad_()
    return found


class Refused(Exception):
    """Raised when the library refuses a step."""


def act(lib, values: list, one):
    """Run one step of a program, and append any new value."""
    kind, name, i, j = one
    x, y = values[i % len(values)], values[j % len(values)]
    if kind == "view":
        new = VIEWS[name](x)
        if new is not None:
            values.append(new)
    elif kind == "op":
        if OPS[name] is not None and _fits(x, y):
            values.append(OPS[name](x, y))
    elif _fits(y, x) and tuple(np.broadcast_shapes(tuple(x.shape), tuple(y.shape))) == tuple(x.shape):
        if y is not x and overlap(x.detach(), y.detach()):
            y = y.clone()                                # PyTorch would read what it has just written
        if name == "set_part" and x.ndim:
            y = y[1:] if y.ndim == x.ndim and y.shape[0] == x.shape[0] else 0.5
        if kind == "frozen":
            with lib.no_grad():
                WRITES[name](x, y)
        else:
            WRITES[name](x, y)


def overlap(x, y) -> bool:
    """Return True if both share an element. For GPU memory, which NumPy must not read, compare the blocks
    instead.
    """
    return x.shares_block(y) if getattr(x, "is_cuda", False) else np.shares_memory(x.numpy(), y.numpy())


def _fits(x, y) -> bool:
    try:
        np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
        return True
    except ValueError:
        return False


def finish(lib, values: list):
    """Return the gradients of the leaves with respect to a weighted sum of all values."""
    total = None
    for k, v in enumerate(values):
        if v.requires_grad:
            term = (v * (0.3 + 0.1 * k)).sum()
            total = term if total is None else total + term
    if total is None:
        return None
    total.backward()
    return [None if t.grad is None else np.array(t.grad.cpu().numpy()) for t in values[:2]]


def ours(a):
    return flow.tensor(a)
