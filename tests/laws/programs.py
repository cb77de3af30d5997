"""Random programs of tensor functions: the table of steps, the initial values, and the interpreter.

A step is (name, indices of three values, a Python number). A step that is refused eagerly is omitted, so that
the table needs no rules about shapes and dtypes.
"""
from __future__ import annotations

import inspect

import numpy as np
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import FlowError

F = flow.nn.functional
BIG = 400  # values with more elements are not used as operands, so that programs stay small
NUMBERS = (0, 1, -1, 2, 3, 7, 0.0, 1.0, 0.5, -1.5, 2.5, 1e-3, True, False, float("inf"), float("-inf"),
           float("nan"))


def named(names: str, make) -> dict:
    return {name: make(name) for name in names.split()}


def places(index, n: int):
    """Convert any values to integers in [0, n)."""
    return flow.nan_to_num(index.double(), 0.0, 1.0, 2.0).long().remainder(n)


def first_places(index, n: int):
    return places(index, n).reshape(-1)[:3]


# Steps by name. Parameters: x, y, and z are values, n is a number.
UNARY = named("""exp sin cos tanh sigmoid erf abs neg square relu floor ceil round sign isnan isfinite
    logical_not clone log sqrt rsqrt reciprocal expm1 log1p sinc softplus silu nan_to_num atan logit digamma lgamma""",
              lambda name: lambda x: getattr(flow, name)(x)) | named(
    """gelu relu6 elu selu leaky_relu hardtanh hardswish mish softsign celu hardsigmoid logsigmoid tanhshrink
    hardshrink softshrink""", lambda name: lambda x: getattr(F, name)(x)) | {"not": lambda x: ~x}
BINARY = named(
    """add sub mul div maximum minimum pow remainder fmod floor_divide atan2 eq ne lt le gt ge logical_and
    logical_or logical_xor bitwise_and bitwise_or hypot fmax fmin xlogy copysign heaviside""",
    lambda name: lambda x, y: getattr(flow, name)(x, y))
NUMBER = {f"{name} n": f
          for name, f in named("""add sub mul div pow remainder fmod floor_divide eq ne lt le gt ge
    logical_and full_like""", lambda name: lambda x, n: getattr(flow, name)(x, n)).items()} | {
    "n - x": lambda x, n: n - x, "n / x": lambda x, n: n / x, "n ** x": lambda x, n: n ** x,
    "n // x": lambda x, n: n // x,
    "n % x": lambda x, n: n % x, "x & n": lambda x, n: x & n, "x | n": lambda x, n: x | n,
    "x ^ n": lambda x, n: x ^ n,
    "x << 1": lambda x: x << 1, "x >> 1": lambda x: x >> 1, "clamp": lambda x, n: x.clamp(n, 2),
    "clamp min": lambda x, n: x.clamp(min=n), "clamp max": lambda x, n: x.clamp(max=n),
    "add alpha": lambda x, y, n: flow.add(x, y, alpha=n),
    "sub alpha": lambda x, y, n: flow.sub(x, y, alpha=n),
    "addcmul": lambda x, y, z, n: flow.addcmul(x, y, z, value=n), "lerp": lambda x, y, n: flow.lerp(x, y, n),
    "threshold": lambda x, n: F.threshold(x, 0.5, n)}
WHERE = {
    "where": lambda x, y, z: flow.where(x.bool(), y, z),
    "where y n": lambda x, y, n: flow.where(x.bool(), y, n),
    "where n y": lambda x, y, n: flow.where(x.bool(), n, y),
    "where n 0.5": lambda x, n: flow.where(x.bool(), n, 0.5),
    "where n 0": lambda x, n: flow.where(x.bool(), n, 0), "where > n": lambda x, n: flow.where(x > n, x, n),
    "where > 1 0": lambda x, n: flow.where(x > n, 1, 0),
    "masked_fill": lambda x, y, n: x.masked_fill(y.bool(), n),
    "masked_fill 0d": lambda x, y, z: x.masked_fill(y.bool(), z.sum().to(x.dtype))}
_ALONG = ("sum mean prod amax amin any all std var logsumexp cumsum cumprod argmax argmin cummax softmax "
          "log_softmax")
REDUCE = ({f"{name} 0": f for name,
           f in named(_ALONG, lambda name: lambda x: getattr(flow, name)(x, 0)).items()} | {
    f"{name} -1": f for name, f in named(_ALONG, lambda name: lambda x: getattr(flow, name)(x, -1)).items()}
          | named("sum mean prod max min any all argmax argmin std count_nonzero norm diff",
                  lambda name: lambda x: getattr(flow, name)(x))
          | {"sum keep": lambda x: x.sum(-1, keepdim=True), "max keep": lambda x: x.max(-1, keepdim=True)[0],
             "max place": lambda x: x.max(-1)[1], "sum (0, 1)": lambda x: x.sum((0, 1)),
             "sort": lambda x: flow.sort(x, -1)[0], "argsort": lambda x: flow.argsort(x, -1),
             "topk": lambda x: flow.topk(x, 2, -1)[0], "median": lambda x: flow.median(x, -1)[0],
             "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:])})
MATRIX = {
    "matmul": lambda x, y: flow.matmul(x, y), "matmul T": lambda x, y: flow.matmul(x, y.transpose(-1, -2)),
    "T matmul": lambda x, y: flow.matmul(x.transpose(-1, -2), y), "outer": lambda x, y: flow.outer(x, y),
    "linear": lambda x, y, z: F.linear(x, y, z),
    "addmm": lambda x, y, z, n: flow.addmm(z, x, y, beta=n, alpha=0.5),
    "einsum": lambda x, y: flow.einsum("...i,...i->...", x, y), "mse": lambda x, y: F.mse_loss(x, y)}
VIEWS = {
    "T": lambda x: x.transpose(-1, -2), "flat": lambda x: x.reshape(-1), "view": lambda x: x.view(-1, 2),
    "row": lambda x: x[0], "last": lambda x: x[..., -1], "tail": lambda x: x[1:],
    "odd": lambda x: x[..., 1::2], "flip": lambda x: x.flip(0),
    "None": lambda x: x[:, None], "unsqueeze": lambda x: x.unsqueeze(-1), "squeeze": lambda x: x.squeeze(),
    "expand": lambda x: x.expand(2, *x.shape), "roll": lambda x: x.roll(1, 0),
    "cat": lambda x, y: flow.cat([x, y], -1),
    "stack": lambda x, y: flow.stack([x, y], 0), "pad": lambda x, n: F.pad(x, (1, 2), value=n),
    "pad -": lambda x, n: F.pad(x, (-1, 1), value=n), "tril": lambda x: x.tril(),
    "diagonal": lambda x: x.diagonal(),
    "half": lambda x: x.chunk(2, -1)[0], "repeat": lambda x: x.repeat(2, *[1] * (x.ndim - 1)),
    "detach": lambda x: x.detach(), "contiguous": lambda x: x.contiguous()}
CASTS = {f"to {name}": f for name, f in named("float32 float64 int32 int64 int8 uint8 float16 bfloat16 bool",
                                              lambda name: lambda x: x.to(getattr(flow, name))).items()} | {
    "type_as": lambda x, y: x.type_as(y)}
INDEX = {
    "gather": lambda x, y: flow.gather(x, -1, places(y, x.shape[-1])), "[[0, -1]]": lambda x: x[[0, -1]],
    "gather keyword": lambda x, y: flow.gather(input=x, dim=0, index=places(y, x.shape[0])),
    "[k]": lambda x, y: x[first_places(y, x.shape[0])],
    "[..., k]": lambda x, y: x[..., first_places(y, x.shape[-1])],
    "index_select": lambda x, y: flow.index_select(x, 0, first_places(y, x.shape[0])),
    "take": lambda x, y: flow.take(x, places(y, x.numel())), "one_hot": lambda x: F.one_hot(places(x, 4), 4),
    "scatter_add": lambda x, y, z: flow.scatter_add(x, -1, places(y, x.shape[-1]), z.to(x.dtype)),
    "scatter n": lambda x, y, n: flow.scatter(x, -1, places(y, x.shape[-1]), n)}


def write_to_copy(act):
    """Wrap a step that writes to a copy of x."""
    def step(x, y, n):
        copy = x.clone()
        act(copy, y, n)
        return copy
    return step


WRITES = {name: write_to_copy(act) for name, act in {
    "add_": lambda c, y, n: c.add_(y), "mul_ n": lambda c, y, n: c.mul_(n),
    "[0] = n": lambda c, y, n: c.__setitem__(0, n),
    "[0] = y": lambda c, y, n: c.__setitem__(0, y), "[..., 1] += n": lambda c, y, n: c[..., 1].add_(n),
    "fill_": lambda c, y, n: c.fill_(n), "masked_fill_": lambda c, y, n: c.masked_fill_(y.bool(), n),
    "copy_": lambda c, y, n: c.copy_(y), "clamp_": lambda c, y, n: c.clamp_(-1, 1),
    "relu_": lambda c, y, n: c.relu_()}.items()}
KINDS = (UNARY, BINARY, NUMBER, WHERE, WHERE, REDUCE, MATRIX, VIEWS, CASTS, INDEX, WRITES)
STEPS = {name: f for kind in KINDS for name, f in kind.items()}
READS = {name: tuple(inspect.signature(f).parameters) for name, f in STEPS.items()}

_place = st.integers(0, 59)
_step = st.tuples(st.one_of(*[st.sampled_from(list(kind)) for kind in KINDS]), _place, _place, _place,
                  st.sampled_from(NUMBERS))
programs = st.tuples(st.lists(_step, min_size=3, max_size=8), st.integers(0, 2 ** 31))


def start(seed: int) -> list[np.ndarray]:
    """Return values of every dtype and rank, with ties and zeros among them."""
    rng = np.random.default_rng(seed)

    def grid(*shape):
        return np.asarray(rng.integers(-4, 5, shape) / 2)

    def whole(low, high, dtype, *shape):
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)

    return [grid(3, 4), grid(3, 4).astype(np.float32), whole(0, 2, bool, 3, 4), grid(4), grid(),
            grid(2, 3, 4).astype(np.float32), whole(-5, 6, np.int64, 3, 4), whole(-5, 6, np.int32, 4, 4),
            whole(0, 2, bool, 2, 3, 4), grid(3, 4).astype(np.float16),
            whole(-90, 90, np.int8, 3, 4), whole(0, 9, np.uint8, 3,
                                                 1), whole(-3, 4, np.int64), whole(0, 2, bool)]


def take(steps, values: list, careful: bool = False) -> tuple[list, list]:
    """Run the steps on a growing list of values: (results that no later step has read, steps that ran).

    careful: omit steps that are refused, or whose values are too large.
    """
    values = list(values)
    made = []
    read = set()
    done = []
    for one in steps:
        name, *picks, n = one
        # even indices select any value, odd ones only results of the program, so that its steps are connected
        picks = [made[-1 - p // 2 % len(made)] if made and p % 2 else p // 2 % len(values) for p in picks]
        given = dict(zip("xyz", picks))
        args = {p: n if p == "n" else values[given[p]] for p in READS[name]}
        if careful and any(isinstance(a, flow.Tensor) and a.numel() > BIG for a in args.values()):
            continue
        try:
            new = STEPS[name](**args)
            if careful and isinstance(new, flow.Tensor) and new.is_cuda:
                new.cpu()                       # a GPU reports an invalid value when its results are read
        except (FlowError, TypeError, IndexError, ValueError, OverflowError):
            if not careful:
                raise
            continue
        if isinstance(new, flow.Tensor):
            read.update(given[p] for p in READS[name] if p in given)
            made.append(len(values))
            values.append(new)
            done.append(one)
    return [values[p] for p in made if p not in read], done
