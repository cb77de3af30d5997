"""Calls of all functions that take a size, with sizes too large for memory. test_sizes.py runs this in a
separate process.

Each call either returns a tensor whose elements are all inside its memory, or raises one of flowedu's errors.
No call crashes, and the session continues. Each call is printed before it runs, so the last line shows where
a process crashed.
"""
import sys
import warnings
from functools import partial

import numpy as np
from children import limit_memory

import flowedu as flow
from flowedu.errors import FlowError

F, nn = flow.nn.functional, flow.nn
SIZES = [0, 1, 2**31, 2**32, 2**61, 2**62, 2**62 + 4, 2**63 - 1, 2**63, 2**64, -1, -2**63]
TYPES = [flow.float32, flow.float64, flow.int64, flow.int8, flow.float16, flow.bfloat16, flow.bool]
ONE, IDS, P = flow.ones(1), flow.tensor([0]), flow.tensor([0.5, 0.5])
PICTURE = flow.ones(1, 1, 2, 2)

# name: a call of one size
CALLS = {
    "empty": lambda n: flow.empty(n), "zeros": lambda n: flow.zeros(n), "ones": lambda n: flow.ones((n,)),
    "full": lambda n: flow.full((n,), 1, dtype=flow.int64), "Tensor": lambda n: flow.Tensor(n),
    "HalfTensor": lambda n: flow.HalfTensor(n), "FloatTensor": lambda n: flow.FloatTensor(2, n),
    "arange": lambda n: flow.arange(n), "arange down": lambda n: flow.arange(0, -n, -1),
    "arange from": lambda n: flow.arange(-n, 3, 1), "arange of floats": lambda n: flow.arange(0, float(n)),
    "linspace": lambda n: flow.linspace(0, 1, n), "logspace": lambda n: flow.logspace(0, 1, n),
    "eye": lambda n: flow.eye(n), "eye of one row": lambda n: flow.eye(1, n), "rand": lambda n: flow.rand(n),
    "randn": lambda n: flow.randn(n), "randint": lambda n: flow.randint(0, 3, (n,)),
    "randperm": lambda n: flow.randperm(n),
    "normal": lambda n: flow.normal(0.0, 1.0, (n,)), "new_zeros": lambda n: ONE.new_zeros(n),
    "new_empty": lambda n: ONE.new_empty(n, n), "new_full": lambda n: ONE.new_full((n,), 2.0),
    "vander": lambda n: flow.vander(flow.ones(3), n), "tril_indices": lambda n: flow.tril_indices(1, n),
    "triu_indices": lambda n: flow.triu_indices(n, 1),
    "bincount of a value": lambda n: flow.bincount(flow.tensor([n])),
    "bincount": lambda n: flow.bincount(IDS, minlength=n), "histc": lambda n: flow.histc(ONE, n),
    "one_hot": lambda n: F.one_hot(IDS, n), "one_hot of a value": lambda n: F.one_hot(flow.tensor([n])),
    "repeat_interleave": lambda n: flow.repeat_interleave(ONE, n),
    "repeat_interleave of a value": lambda n: flow.repeat_interleave(flow.ones(2), flow.tensor([1, n])),
    "multinomial": lambda n: flow.multinomial(P, n, replacement=True),
    "scatter_nd": lambda n: flow.scatter_nd(flow.tensor([[0]]), ONE, (n,)),
    "unsorted_segment_sum": lambda n: flow.unsorted_segment_sum(ONE, IDS, n),
    "repeat": lambda n: ONE.repeat(n), "repeat twice": lambda n: ONE.repeat(n, n),
    "tile": lambda n: flow.tile(ONE, (n,)),
    "expand": lambda n: ONE.expand(n), "expand, copied": lambda n: ONE.expand(n).contiguous(),
    "broadcast_to": lambda n: flow.broadcast_to(ONE, (n, 1)),
    "outer": lambda n: flow.outer(ONE.expand(n), ONE.expand(n)),
    "add": lambda n: ONE.expand(n, 1) + ONE.expand(1, n), "cat": lambda n: flow.cat([ONE.expand(n)] * 3),
    "kron": lambda n: flow.kron(ONE.expand(n), ONE.expand(n)), "cdist": lambda n: flow.cdist(
        flow.ones(1, 1).expand(n, 1), flow.ones(1, 1).expand(n, 1)),
    "matmul": lambda n: flow.ones(1, 1).expand(n, 1) @ flow.ones(1, 1).expand(1, n),
    "pad": lambda n: F.pad(ONE, (n, 0)), "pad both": lambda n: F.pad(PICTURE, (n, n, n, n)),
    "pad by reflection": lambda n: F.pad(PICTURE, (n, n), mode="reflect"),
    "constant pad": lambda n: nn.ConstantPad2d(n, 1.0)(PICTURE),
    "diag_embed": lambda n: flow.diag_embed(ONE, n),
    "diag": lambda n: flow.diag(ONE, n), "diagflat": lambda n: flow.diagflat(ONE, n),
    "roll": lambda n: flow.roll(ONE, n),
    "tril": lambda n: flow.tril(flow.ones(2, 2), n), "as_strided": lambda n: flow.as_strided(ONE, (n,), (1,)),
    "as_strided by steps": lambda n: flow.as_strided(flow.ones(4), (2,), (n,)),
    "as_strided from": lambda n: flow.as_strided(flow.ones(4), (1,), (1,), n),
    "as_strided of nothing": lambda n: flow.as_strided(flow.ones(4), (2, n), (0, 0)),
    "reshape": lambda n: flow.ones(0).reshape(0, n), "view": lambda n: flow.ones(4).view(n, -1),
    "unflatten": lambda n: flow.ones(4).unflatten(0, (n, -1)),
    "narrow": lambda n: flow.ones(4).narrow(0, 0, n),
    "narrow from": lambda n: flow.ones(4).narrow(0, n, 1), "split": lambda n: flow.ones(4).split(n),
    "chunk": lambda n: flow.ones(4).chunk(n), "slice": lambda n: flow.ones(4)[n:],
    "step": lambda n: flow.ones(4)[::n],
    "index": lambda n: flow.ones(4)[n], "indices": lambda n: flow.ones(4)[flow.tensor([n])],
    "gather": lambda n: flow.gather(flow.ones(4), 0, flow.tensor([n])), "take": lambda n: flow.take(
        flow.ones(4), flow.tensor([n])), "scatter": lambda n: flow.scatter(flow.ones(4), 0, flow.tensor([n]),
                                                                           1.0),
    "index_select": lambda n: flow.index_select(flow.ones(4), 0, flow.tensor([n])),
    "embedding": lambda n: F.embedding(flow.tensor([n]), flow.ones(4, 2)),
    "topk": lambda n: flow.topk(flow.ones(4), n),
    "kthvalue": lambda n: flow.kthvalue(flow.ones(4), n), "diff": lambda n: flow.diff(flow.ones(4), n),
    "unfold": lambda n: flow.ones(4).unfold(0, n, 1),
    "unfold by steps": lambda n: flow.ones(4).unfold(0, 1, n),
    "cross_entropy": lambda n: F.cross_entropy(flow.ones(1, 3), flow.tensor([n])),
    "Embedding": lambda n: nn.Embedding(n, n), "Linear": lambda n: nn.Linear(n, 4),
    "Linear out": lambda n: nn.Linear(4, n),
    "Conv2d": lambda n: nn.Conv2d(n, n, 3), "Conv2d kernel": lambda n: nn.Conv2d(1, 1, n),
    "LSTM": lambda n: nn.LSTM(n, n),
    "BatchNorm2d": lambda n: nn.BatchNorm2d(n), "LayerNorm": lambda n: nn.LayerNorm(n),
    "matrix_power": lambda n: flow.linalg.matrix_power(flow.ones(2, 2), n),
    "pixel_shuffle": lambda n: F.pixel_shuffle(flow.ones(1, 4, 2, 2), n),
    "interpolate": lambda n: F.interpolate(PICTURE, size=n), "interpolate scale": lambda n: F.interpolate(
        PICTURE, scale_factor=float(n)), "bilinear": lambda n: F.interpolate(PICTURE, size=n,
                                                                             mode="bilinear"),
    "area": lambda n: F.interpolate(PICTURE, size=n, mode="area"),
    "adaptive_avg_pool1d": lambda n: F.adaptive_avg_pool1d(flow.ones(1, 1, 3), n),
    "adaptive_avg_pool2d": lambda n: F.adaptive_avg_pool2d(PICTURE, n),
    "adaptive_avg_pool3d": lambda n: F.adaptive_avg_pool3d(flow.ones(1, 1, 2, 2, 2), n),
    "adaptive_max_pool1d": lambda n: F.adaptive_max_pool1d(flow.ones(1, 1, 3), n),
    "adaptive_max_pool2d": lambda n: F.adaptive_max_pool2d(PICTURE, n),
    "affine_grid": lambda n: F.affine_grid(flow.ones(1, 2, 3), (1, 1, n, n)),
    "fold": lambda n: F.fold(flow.ones(1, 4, 1), (n, n), (2, 2)), "max_unpool": lambda n: F.max_unpool2d(
        PICTURE, flow.zeros(1, 1, 2, 2, dtype=flow.int64), 2, 2, output_size=(n, n)),
    "combinations": lambda n: flow.combinations(flow.arange(40), n),
    "cartesian_prod": lambda n: flow.cartesian_prod(
        ONE.expand(n), ONE.expand(n)), "meshgrid": lambda n: flow.meshgrid(ONE.expand(n), ONE.expand(n)),
}
TWO = {
    "zeros": flow.zeros, "empty": flow.empty, "zeros of nothing": lambda a, b: flow.zeros(0, a, b),
    "expand": lambda a, b: ONE.expand(a, b), "rand": flow.rand, "tril_indices": flow.tril_indices,
    "eye": flow.eye,
    "Embedding": nn.Embedding, "repeat": lambda a, b: ONE.repeat(a, b),
    "full": lambda a, b: flow.full((a, b), 0.5),
    "reshape": lambda a, b: flow.ones(0).reshape(a, b), "pad": lambda a, b: F.pad(PICTURE, (a, b, a, b)),
}


def assert_result_or_flow_error(what: str, call, *args) -> None:
    print(what, flush=True)
    try:
        result = call(*args)
    except FlowError as e:
        assert e.problem and (e.expected or e.fix), f"{what} says too little: {e}"
        return
    except (TypeError, IndexError, ValueError) as e:
        assert type(e) in (TypeError, IndexError, ValueError) and len(str(e)) > 8, f"{what}: {e!r}"
        raise AssertionError(f"{what}: not one of flowedu's errors: {e!r}") from None
    except (Exception, RecursionError) as e:
        raise AssertionError(f"{what}: not one of flowedu's errors: {e!r}") from None
    for t in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(t, flow.Tensor) and t.has_memory and t.numel():
            start, room = t._block_address
            ends = [t.address + sum((n - 1) * s * t.dtype.bytes for n, s in zip(t.shape, t.strides)
                                    if s * sign > 0)
                    for sign in (1, -1)]
            assert start <= min(ends) and max(
                ends) + t.dtype.bytes <= start + room, f"{what}: {t.shape} outside its memory"


def main() -> None:
    warnings.simplefilter("ignore")
    limit_memory()
    for name, f in CALLS.items():
        for n in SIZES:
            assert_result_or_flow_error(f"{name}({n})", f, n)
    for name, f in TWO.items():
        for a in SIZES[:8]:
            for b in SIZES[:8]:
                assert_result_or_flow_error(f"{name}({a}, {b})", f, a, b)
    for dtype in TYPES:
        for n in (2**60, 2**61, 2**62, 2**62 + 4, 2**63 - 1):
            for k in (1, 2, 4, 8):
                assert_result_or_flow_error(f"zeros({n} / {k}, dtype={dtype})",
                                            partial(flow.zeros, dtype=dtype), n // k)
    np.testing.assert_array_equal((flow.ones(3) + 1).numpy(), [2, 2, 2])          # the session continues
    print("all", len(CALLS))


if __name__ == "__main__":
    sys.exit(main())
