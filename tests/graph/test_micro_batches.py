"""Law: k micro-batches take the step of the whole batch, or are refused, for every op, layer, and
function.
"""
import math
import random
import warnings
import zlib

import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import nn
from flowedu.core.ops.axes import parse
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError, UnsupportedError
from laws.calls import attributes, cases, draw_arrays, examples, label, thin, types_of
from nn.cases import LAYERS, RECURRENT, array

from .making import make_graph

# Both steps compute in float64 and differ in the order of sums of at most 1e4 terms, each at most 1e3: 1e4 *
# 2**-53 relative to the terms. The guaranteed tolerance is 1e-5.
CLOSE = dict(rtol=1e-5, atol=1e-9)


def step(model, loss, args, k, refusable=FlowError):
    """Return the parameters after a step of SGD: eagerly (k=0), or of a graph with k micro-batches; None if
    the graph refuses.
    """
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01)
    before = {name: x.clone() for name, x in model.state_dict().items()}

    def build(self, *args):
        value = loss(self.model, *args)
        value.backward()
        return value

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if k:
                make_graph(build, optimizer, model=model,
                           config={"set_gradient_accumulation_steps": k})(*args)
            else:
                loss(model, *args).backward()
                optimizer.step()
    except refusable:
        if not k:
            raise
        return None
    finally:
        after = [p.detach().numpy().copy() for p in model.parameters()]
        optimizer.zero_grad()
        model.load_state_dict(before)
    return after


def assert_same_step(model, loss, args, ks=(2,), refusable=FlowError) -> bool:
    """Return True if all the graphs took the step; False if one refused."""
    want = step(model, loss, args, 0)
    got = [step(model, loss, args, k, refusable) for k in ks]
    for parameters in got:
        for a, b in zip(parameters or (), want):
            np.testing.assert_allclose(a, b, **CLOSE)
    return None not in got


# ---- every op of the registry, every axis of every input as the rows
class Call(nn.Module):
    """Calls an op on row inputs, which `scale` trains, and on constant inputs."""

    def __init__(self, op, example, arrays, rows):
        super().__init__()
        self.op = op
        self.attrs = attributes(op, example)
        self.rows = rows
        self.count = len(arrays)
        self.scale = nn.Parameter(flow.tensor([1.1], dtype=flow.float64))
        for i, a in enumerate(arrays):
            if i not in rows:
                self.register_buffer(f"input{i}", flow.tensor(a))

    def forward(self, *given):
        given, xs = iter(given), []
        for i in range(self.count):
            if i in self.rows:
                x = next(given)
                x = x * self.scale if x.dtype.is_floating_point else x
                xs.append(x.movedim(0, self.rows[i]))
            else:
                xs.append(getattr(self, f"input{i}"))
        out = self.op.call(tuple(xs), self.attrs)
        return out if isinstance(out, tuple) else (out,)


def loss_of(how):
    def loss(model, *args):
        parts = [(y.to(flow.float64) * model.scale).square() for y in model(*args)]
        return sum(getattr(y, how)() for y in parts)
    return loss


def choices(op, example):
    """Return {input: axis} of possible row axes: all axes with one letter, and each axis alone, if 2 divides
    it.
    """
    attrs, shapes = attributes(op, example), example["shapes"]
    specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(shapes, types_of(op, example, np.float64))]
    even = [(i, a) for i, s in enumerate(shapes) for a, n in enumerate(s) if n and n % 2 == 0]
    found = [{i: a} for i, a in even]
    if op.axes is not None:
        terms, _ = parse(op.equation(specs, attrs), len(specs))
        for letter in dict.fromkeys(c for t in terms for c in t.lower() if c.isalpha()):
            found.append({i: t.lower().index(letter) for i, t in enumerate(terms)
                          if letter in t.lower() and (i, t.lower().index(letter)) in even})
    return [c for i, c in enumerate(found) if c and c not in found[:i]]


OPS = thin(cases(lambda op: not op.mutates and not op.random and not op.effect and op.inputs))
SAFE = {"matmul", "add", "softmax", "layer_norm", "conv2d", "gather", "concat", "max_pool2d", "attention",
        "sum", "lstm", "softmax_cross_entropy", "sparse_softmax_cross_entropy", "where", "cumsum", "argmax"}


@pytest.mark.parametrize("case", OPS, ids=label)
def test_ops_in_micro_batches_equal_the_whole_batch_or_are_refused(case):
    op, example = case
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    arrays = draw_arrays(op, example, np.float64, rng)
    taken = []
    for i, rows in enumerate(choices(op, example)):
        model = Call(op, example, arrays, rows)
        args = [flow.tensor(np.ascontiguousarray(np.moveaxis(arrays[i], a, 0))) for i, a in rows.items()]
        try:
            loss = loss_of("mean" if i % 2 else "sum")
            step(model, loss, args, 0)
        except FlowError:                                # no gradient, or no float64 kernel
            continue
        taken.append(assert_same_step(model, loss, args))
    if op.name in SAFE and example == examples(op)[0]:
        assert any(taken), "no choice of rows is taken"


# ---- every layer
class Scaled(nn.Module):
    """Applies a layer after a trained scale."""

    def __init__(self, layer):
        super().__init__()
        self.scale, self.layer = nn.Parameter(flow.tensor([1.1], dtype=flow.float64)), layer

    def forward(self, *xs):
        y = self.layer(*[x * self.scale if x.dtype.is_floating_point else x for x in xs])
        return [t.to(flow.float64) for t in flatten(y)]


def flatten(y):
    return [t for part in y for t in flatten(part)] if isinstance(y, (tuple, list)) else [y]


def doubled(spec):
    """Return the spec of a batch twice as large."""
    if isinstance(spec, np.ndarray):
        return np.concatenate([spec, spec])
    kind, shape = (spec[:-1], spec[-1]) if isinstance(spec[0], str) else ((), spec)
    shape = (2 * shape[0], *shape[1:])
    return (*kind, shape) if kind else shape


TAKEN_LAYERS = ("nn.Linear(", "nn.Conv2d(", "nn.LayerNorm(", "nn.GroupNorm(", "nn.MaxPool2d(",
                "nn.AvgPool2d(",
                "nn.Flatten(", "nn.LSTMCell(", "nn.Upsample(", "nn.InstanceNorm2d(", "nn.GELU(",
                "nn.ReflectionPad2d(")


# A BatchNorm layer normalizes each micro-batch separately, as documented for the setting.
LAYER_CASES = [c for c in LAYERS + RECURRENT if not c[0].startswith("nn.BatchNorm")]


@pytest.mark.parametrize("case", LAYER_CASES, ids=lambda c: f"{c[0]} {c[1]}")
def test_layers_in_micro_batches_equal_the_whole_batch_or_are_refused(case):
    text, *specs = case
    model, args = (Scaled(eval(text).double()), [flow.tensor(array(doubled(s), i))
                                                 for i, s in enumerate(specs)])
    how = "mean" if zlib.crc32(text.encode()) % 2 else "sum"

    def loss(model, *args):
        return sum(getattr((y * model.scale).square(), how)() for y in model(*args))

    try:
        step(model, loss, args, 0)
    except Exception:  # a sample without a batch axis, whose first axis has one size
        args = [flow.tensor(array(s, i)) for i, s in enumerate(specs)]
        if any(len(x) % 2 for x in args):
            return
    taken = assert_same_step(model, loss, args)
    batched = len(specs[0]) in (2, 4) and not isinstance(specs[0][0], str)
    assert taken or not (batched and text.startswith(TAKEN_LAYERS))


# ---- functions of the rows
ROWS, WIDTH = 8, 4
RNG = np.random.default_rng(3)
X, LABELS = RNG.standard_normal((ROWS, WIDTH)), RNG.integers(0, WIDTH, ROWS)


class LayersForLosses(nn.Module):
    """Trained layer, with layers and tensors for losses."""

    def __init__(self):
        super().__init__()
        flow.manual_seed(1)
        self.linear, self.softmax, self.norm = nn.Linear(WIDTH, WIDTH), nn.Softmax(dim=0), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.flat = nn.Sequential(nn.Flatten(0), nn.Softmax(0), nn.Unflatten(0, (-1, WIDTH)))
        self.token = nn.Parameter(flow.randn(1, 1, WIDTH))
        self.register_buffer("center", flow.zeros(WIDTH))
        self.double()


def move_center(m, z):
    m.center.copy_(0.5 * m.center + 0.5 * z.detach().mean(0))
    return (z - m.center).square().mean()


def in_branches(m, z):
    return z.square().mean() if len(z) > 2 else z.abs().mean()


def without_gradient(m, z):
    with flow.set_grad_enabled(len(z) > 2):
        y = z.square()
    return (y * z).mean()


def choose_loss(m, z):
    a, b = z.square().mean(), z.abs().mean()
    return b if len(z) > 2 else a


def with_token(m, z):
    """Prepend a learned token to the patches of every sample, like a vision transformer."""
    tokens = flow.cat([m.token.expand(len(z), -1, -1), z.reshape(-1, 2, WIDTH // 2).repeat(1, 1, 2)], dim=1)
    return m.attention(tokens, tokens, tokens)[0][:, 0].square().mean()


def gradient_penalty(m, z):
    """Compute the gradient penalty with respect to each row."""
    (g,) = flow.autograd.grad(z.square().sum(), z, create_graph=True)
    return g.square().sum(1).mean()


MIXING = {
    "cumsum": lambda m, z: z.cumsum(0).square().mean(),
    "cumprod": lambda m, z: z.cumprod(0).square().mean(),
    "cummax": lambda m, z: z.cummax(0)[0].square().mean(),
    "logcumsumexp": lambda m, z: z.logcumsumexp(0).square().mean(),
    "diff": lambda m, z: z.diff(dim=0).square().sum(),
    "topk": lambda m, z: z.square().sum(1).topk(2)[0].mean(),
    "sort": lambda m, z: (z.sort(0)[0] * z.detach().cos()).sum(),
    "argsort": lambda m, z: (z.argsort(0).to(flow.float64) * z).sum(),
    "median": lambda m, z: z.median(0)[0].square().sum(),
    "kthvalue": lambda m, z: z.kthvalue(1, 0)[0].square().sum(),
    "max": lambda m, z: z.max(0)[0].square().sum(),
    "amin": lambda m, z: z.amin(0).sum(),
    "argmax": lambda m, z: (z * z.argmax(0).to(flow.float64)).sum(),
    "logsumexp": lambda m, z: z.logsumexp(0).sum(),
    "softmax": lambda m, z: (z.softmax(0) * z.detach().cos()).sum(),
    "log_softmax": lambda m, z: (z.log_softmax(0) * z.detach().cos()).mean(),
    "softmax of all": lambda m, z: (z.flatten().softmax(0).reshape(z.shape) * z.detach().cos()).sum(),
    "layer with no parameters": lambda m, z: (m.softmax(z) * z.detach().cos()).sum(),
    "sequence of layers": lambda m, z: (m.flat(z) * z.detach().cos()).sum(),
    "flip": lambda m, z: (z.flip(0) * z.detach().cos()).sum(),
    "roll": lambda m, z: (z.roll(1, 0) * z).sum(),
    "first rows": lambda m, z: z[:2].square().sum(),
    "last row": lambda m, z: z[-1].square().sum(),
    "every second row": lambda m, z: z[::2].square().sum(),
    "index_select": lambda m, z: z.index_select(0, flow.tensor([1, 0])).square().sum(),
    "narrow": lambda m, z: z.narrow(0, 0, 2).square().mean(),
    "chunks": lambda m, z: (z.chunk(2)[0] * z.chunk(2)[1]).sum(),
    "padded": lambda m, z: F.pad(z, (0, 0, 1, 1), value=2.0).square().mean(),
    "unfold": lambda m, z: z.unfold(0, 2, 1).square().mean(),
    "batch_norm": lambda m, z: (F.batch_norm(z, None, None, training=True) * z.detach().cos()).mean(),
    "layer_norm of all": lambda m, z: (F.layer_norm(z, tuple(z.shape)) * z.detach().cos()).mean(),
    "group_norm of all": lambda m, z: (F.group_norm(z.unsqueeze(0), 1) * z.detach().cos()).mean(),
    "normalize": lambda m, z: (F.normalize(z, dim=0) * z.detach().cos()).sum(),
    "centered": lambda m, z: (z - z.mean(0)).square().mean(),
    "std": lambda m, z: z.std(),
    "var": lambda m, z: z.var(0).sum(),
    "norm": lambda m, z: z.norm(),
    "pairs": lambda m, z: (z @ z.t()).square().mean(),
    "cdist": lambda m, z: flow.cdist(z, z).mean(),
    "einsum of pairs": lambda m, z: flow.einsum("ni,mi->nm", z, z).square().mean(),
    "contrast": lambda m, z: F.cross_entropy(z @ z.detach().t(), flow.arange(len(z))),
    "outer": lambda m, z: flow.outer(z[:, 0], z[:, 1]).square().sum(),
    "attention over the batch": lambda m,
    z: F.scaled_dot_product_attention(*[z.unsqueeze(0)] * 3).square().mean(),
    "attention layer over the batch": lambda m, z: m.attention(*[z.unsqueeze(0)] * 3)[0].square().mean(),
    "triangle": lambda m, z: (flow.tril(flow.ones(len(z), len(z), dtype=flow.float64)) @ z).square().mean(),
    "eye": lambda m, z: (flow.eye(len(z), dtype=flow.float64).cumsum(0) @ z).square().mean(),
    "weights by place": lambda m, z: (z * flow.arange(len(z), dtype=flow.float64)[:, None]).sum(),
    "linspace": lambda m, z: (z * flow.linspace(0, 1, len(z), dtype=flow.float64)[:, None]).sum(),
    "weights of NumPy": lambda m, z: (z * flow.tensor(np.arange(len(z))[:, None] + 1.0)).sum(),
    "square of sum": lambda m, z: z.sum().square(),
    "root of mean": lambda m, z: z.square().mean().sqrt(),
    "log of mean": lambda m, z: z.exp().mean().log(),
    "power by size": lambda m, z: (z.abs() + 1).pow(1 / len(z)).mean(),
    "clamp by size": lambda m, z: z.clamp(max=2 / len(z)).sum(),
    "size inside": lambda m, z: (z * len(z)).square().mean(),
    "tensor of the size": lambda m, z: (z * flow.tensor(float(len(z)), dtype=flow.float64)).exp().mean(),
    "slope by size": lambda m, z: F.leaky_relu(z, 1 / len(z)).mean(),
    "epsilon by size": lambda m, z: (F.layer_norm(z, (WIDTH,), eps=1 / len(z)) * z.detach().cos()).sum(),
    "axis by size": lambda m, z: (z.reshape(len(z), 2, 2).cumsum(1 if len(z) > 2
                                                                 else 2) * z.detach().mean()).sum(),
    "features by size": lambda m, z: z[:, :len(z) // 2].square().sum(),
    "branch on size": in_branches, "gradient by size": without_gradient, "choice by size": choose_loss,
    "rounded by size": lambda m, z: ((z * len(z)).to(flow.int64).to(flow.float64) * z).sum(),
    "mask by size": lambda m, z: ((z / len(z)).to(flow.bool).to(flow.float64) * z).sum() * len(z),
    "loop over rows": lambda m, z: sum((row.square().sum() for row in z), flow.zeros((), dtype=flow.float64)),
    "interleaved": lambda m, z: (z.t().reshape(-1, WIDTH) * z.detach().cos()).sum(),
    "halves by reshape": lambda m, z: z.reshape(2, -1).softmax(1).square().sum(),
    "repeated": lambda m, z: (z.repeat(2, 1)[1:-1]).square().sum(),
    "shuffled": lambda m, z: (z[flow.arange(len(z)).flip(0)] * z).sum(),
    "meshgrid": lambda m, z: (flow.meshgrid(z[:, 0], z[:, 1],
                                            indexing="ij")[0] * z.detach().mean()).square().sum(),
    "moved center": move_center,
    "slope of all": lambda m, z: flow.autograd.grad(z.square().sum().square(), z,
                                                    create_graph=True)[0].square().mean(),
}
TAKEN = {
    "mean": lambda m, z: z.square().mean(),
    "mean times rows": lambda m, z: z.square().mean() * z.shape[0],
    "sum over rows": lambda m, z: z.square().sum() / len(z),
    "sum over root": lambda m, z: z.square().sum() / math.sqrt(len(z)),
    "sum times number": lambda m, z: z.square().sum() * 0.25,
    "divided inside": lambda m, z: (z.square() / len(z)).sum(),
    "twice by size": lambda m, z: (z / len(z)).sum() * len(z) - 2 * (z.abs() / z.numel()).sum(),
    "mean of means": lambda m, z: z.square().mean(1).mean(),
    "tensor of the size": lambda m, z: z.square().sum() / flow.tensor(float(len(z)), dtype=flow.float64),
    "decayed by size": lambda m, z: z.square().mean() + m.linear.weight.square().sum() / len(z),
    "sums and means": lambda m, z: z.sum() * 0.1 + z.square().mean() - 3 * z.abs().sum() / len(z),
    "softmax": lambda m, z: (z.softmax(1) * z.detach().cos()).sum(),
    "sorted features": lambda m, z: z.sort(1)[0].cumsum(1).flip(1)[:, :2].square().mean(),
    "layer norm": lambda m, z: (m.norm(z) * z.detach().cos()).mean(),
    "token": with_token,
    "two views": lambda m, z: F.mse_loss(flow.cat([z, z * 2]).tanh(), flow.cat([z.detach() * 3, z.detach()])),
    "stacked": lambda m, z: flow.stack([z, z.exp()]).reshape(-1, WIDTH).log_softmax(1)[:, 0].mean(),
    "ones": lambda m, z: (z * flow.ones(len(z), 1, dtype=flow.float64)).sum(),
    "slope": gradient_penalty,
    "heads": lambda m, z: z.reshape(len(z), 2, 2).transpose(1, 2).matmul(z.reshape(-1, 2, 2)).square().mean(),
    "einsum": lambda m, z: flow.einsum("ni,ij,nj->n", z, m.linear.weight, z).mean(),
}


def loss_of_rows(f):
    return lambda model, x: f(model, model.linear(x))


@pytest.mark.parametrize("name", MIXING)
def test_functions_that_mix_rows(name):
    """They either take the same step or are refused; currently all are refused, with the line of the op that
    mixes rows.
    """
    model, loss = LayersForLosses(), loss_of_rows(MIXING[name])
    assert not assert_same_step(model, loss, [flow.tensor(X)], (2, 4), UnsupportedError)


@pytest.mark.parametrize("name", TAKEN)
def test_functions_that_keep_rows_apart(name):
    assert assert_same_step(LayersForLosses(), loss_of_rows(TAKEN[name]), [flow.tensor(X)], (2, 4, 8))


def test_the_refusal_names_the_line_of_the_op():
    def build(self, x):
        z = self.model.linear(x)
        z = z.cumsum(0)                                  # this line
        z.square().mean().backward()

    model = LayersForLosses()
    g = make_graph(build, flow.optim.SGD(model.parameters(), lr=0.1), model=model,
                   config={"set_gradient_accumulation_steps": 2})
    with pytest.raises(UnsupportedError, match="cumsum combines rows") as e:
        g(flow.tensor(X))
    assert "this line" in e.value.at


def test_the_comparison_has_no_side_effects():
    """Build is traced a second time, on the whole batch; generator state and the printed graph stay the
    same.
    """
    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss

    states, texts = [], []
    for k in (1, 2):
        flow.manual_seed(5)
        model = nn.Sequential(nn.Linear(WIDTH, 3), nn.Dropout(0.5))
        g = make_graph(build, flow.optim.SGD(model.parameters(), lr=0.1), model=model,
                       config={"set_gradient_accumulation_steps": k})
        g(flow.randn(8, WIDTH))
        states.append(flow.get_rng_state().tolist())
        texts.append(repr(g).count("OPERATOR: model.0-matmul"))
    assert states[0] == states[1] and texts[0] >= 1


def test_build_may_use_random_numbers_of_python_and_numpy():
    """Both traces get the same random numbers, for instance for layer drop; later draws do not change."""
    def build(self, x):
        z = self.model.linear(x)
        if random.random() < 0.5:
            z = z.tanh()
        (z.square().mean() * float(np.random.rand())).backward()  # noqa: NPY002

    later = []
    for k in (1, 2):
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        for _ in range(6):
            model = LayersForLosses()
            make_graph(build, flow.optim.SGD(model.parameters(), lr=0.1), model=model,
                       config={"set_gradient_accumulation_steps": k})(flow.tensor(X))
        later.append((random.random(), np.random.rand()))  # noqa: NPY002
    assert later[0] == later[1]


class CumulativeNorm(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x).cumsum(0)


def test_batch_norm_layers():
    """Only nn.BatchNorm itself normalizes each micro-batch separately; subclasses with additions, and the
    function, are refused.
    """
    def steps(norm):
        flow.manual_seed(2)
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), norm).double()
        return step(model, lambda m, x: (m(x) * x).mean(), [flow.tensor(X)], 2, UnsupportedError)

    assert steps(nn.BatchNorm1d(WIDTH)) is not None and steps(nn.BatchNorm1d(WIDTH, affine=False)) is not None
    assert steps(CumulativeNorm(WIDTH)) is None
