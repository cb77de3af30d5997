"""Calls for the laws: for every registered op, inputs drawn to fit its equation, dtypes, and domains."""
from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import as_dtype, float32
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

# For laws that depend less on the drawn values: a third of the profile's examples.
few = settings(max_examples=max(5, settings().max_examples // 3))
FLOATS, INTS = (np.float32, np.float64), (np.int32, np.int64)


def examples(op) -> list[dict]:
    """Return the op's examples; an elementwise op without any is tried on equal and on broadcast shapes."""
    if op.examples:
        return list(op.examples)
    n = len(op.inputs)
    return [{"shapes": [(6, 12)] * n}, {"shapes": [(6, 12), (12,),
                                                   (6, 1)][:n]}, {"shapes": [(6, 1), (1, 12), (12,)][:n]}]


def cases(want=lambda op: True) -> list:
    """Return (op, example) pairs of all ops that `want` accepts."""
    return [(op, e) for op in REGISTRY.values() if want(op) for e in examples(op)]


def thin(calls: list) -> list:
    """Mark laws that are similar for every example of an op: `make test` runs one example, alternating over
    the ops; `make test-all` runs all.
    """
    of = {}
    for op, e in calls:
        of.setdefault(op.name, []).append(e)
    quick = {name: found[zlib.crc32(name.encode()) % len(found)] for name, found in of.items()}
    return [pytest.param((op, e), marks=[pytest.mark.slow] * (e != quick[op.name])) for op, e in calls]


def label(case) -> str:
    op, e = case
    shapes = "_".join("x".join(map(str, s)) or "0d" for s in e["shapes"])
    return f"{op.name}-{shapes}-{zlib.crc32(repr(sorted(e.items(), key=str)).encode()) % 1000}"


def attributes(op, example: dict) -> tuple:
    return op.complete({k: v for k, v in example.items() if k not in ("shapes", "dtypes")})


def input_name(op, i: int) -> str:
    return op.inputs[0] if op.variadic else op.inputs[i]


def types_of(op, example, dtype) -> list:
    """Return the dtype of each input: the drawn dtype for floats; indices and masks have fixed dtypes."""
    out = []
    for i in range(len(example["shapes"])):
        domain = op.domain.get(input_name(op, i), "any")
        out.append(np.int64 if domain.startswith("index") else np.int8 if domain == "mask" else dtype)
    return out


def draw_values(domain: str, shape, dtype, rng, place: int = 0) -> np.ndarray:
    """Draw values of a domain. Floats are on a fine grid, offset for each input (`place`): all values are
    distinct and none is 0, so that derivatives do not jump nearby.
    """
    n = int(np.prod(shape))
    if domain.startswith("index"):
        return rng.integers(0, int(domain.partition(":")[2]), shape).astype(dtype)
    if domain == "mask":
        return rng.integers(0, 2, shape).astype(dtype)
    if domain == "few":
        return rng.permutation(np.arange(n) % 3 - 1).reshape(shape).astype(dtype)
    if domain in ("matrix", "definite"):  # far from singular; the second with x.T @ A @ x > 0
        square = len(shape) > 1 and shape[-1] == shape[-2]
        return (rng.uniform(-1, 1, shape) + (np.eye(shape[-1]) * shape[-1] if square else 0)).astype(dtype)
    if domain == "sorted":
        return np.sort(draw_values("any", shape, dtype, rng, place),
                       axis=-1 if shape else None).reshape(shape)
    low, high = {"positive": (0.3, 2.5), "unit": (-0.85, 0.85), "share": (0.1, 0.9),
                 "above_one": (1.2, 3.0)}.get(
                     domain, (-2.0, 2.0))
    if np.issubdtype(dtype, np.integer):
        x = rng.integers(-9 if domain == "any" else 1, 9, n)
    else:
        x = rng.permutation((np.floor(np.linspace(low, high,
                                                  n + 2)[1:-1] * 1024) + (place % 7 + 1) / 8) / 1024)
        if low < 0:
            x += np.sign(x) * 0.06
    return x.reshape(shape).astype(dtype)


def draw_arrays(op, example, dtype, rng) -> list[np.ndarray]:
    """Draw the inputs of an example, with floats of this dtype."""
    return [draw_values(op.domain.get(input_name(op, i), "any"), shape, t, rng, i)
            for i, (shape, t) in enumerate(zip(example["shapes"], types_of(op, example, dtype)))]


def strided(x: np.ndarray, layout: int) -> np.ndarray:
    """Return the same array in another memory layout: 0 contiguous, 1 column-major, 2 every second element, 3
    reversed axes inside a larger array.
    """
    if layout == 0 or x.ndim == 0:
        return x.copy(order="C")
    if layout == 1:
        return np.asfortranarray(x)
    big = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    view = big[tuple(slice(0 if layout == 2 else 1, 2 * n + (0 if layout == 2 else 1), 2) for n in x.shape)]
    view[...] = x
    return view


def resized(op, example: dict, sizes) -> dict:
    """Return the example with other sizes for its splittable letters if the op accepts them, else the
    example.
    """
    attrs = attributes(op, example)
    specs = [Spec(tuple(s), float32) for s in example["shapes"]]
    try:
        ins, _ = parse(op.equation(specs, attrs), len(specs))
        new = {}
        shapes = [tuple(new.setdefault(c, sizes(c, n)) if c.islower() else n for c, n in zip(t, s))
                  for t, s in zip(ins, example["shapes"])]
        types = types_of(op, example, np.float32)
        op.infer([Spec(s, as_dtype(t)) for s, t in zip(shapes, types)], attrs)
    except (FlowError, KeyError, IndexError, ZeroDivisionError):
        return example
    return {**example, "shapes": shapes}


@st.composite
def call_inputs(draw, op, example, dtypes=None, resize=True):
    """Draw (arrays, attrs): inputs of one call with a drawn size, dtype, and layout."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from(dtypes or (FLOATS if op.float_only else FLOATS + INTS)))
    if resize and draw(st.booleans()):
        picks = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 17]), min_size=8, max_size=8))
        order: dict[str, int] = {}
        example = resized(op, example, lambda c, n: picks[order.setdefault(c, len(order)) % 8])
    arrays = []
    for i, (shape, t) in enumerate(zip(example["shapes"], types_of(op, example, dtype))):
        x = draw_values(op.domain.get(input_name(op, i), "any"), shape, t, rng, i)
        arrays.append(strided(x, draw(st.integers(0, 3))))
    return arrays, attributes(op, example)


def reference(op, arrays, attrs) -> tuple:
    """Return the op's NumPy reference result, as a tuple."""
    names = dict(zip(op.attrs, attrs))
    if op.variadic:
        names[op.inputs[0]] = tuple(arrays)
    else:
        names.update(zip(op.inputs, arrays))
    with np.errstate(all="ignore"):
        out = op.ask(op.ref, names)
    return tuple(np.asarray(y) for y in out) if isinstance(out, tuple) else (np.asarray(out),)


def run_eagerly(op, arrays, attrs) -> tuple:
    """Run the op eagerly; return a tuple of ndarrays."""
    out = op.call(tuple(from_numpy(a) for a in arrays), attrs)
    return tuple(y.numpy() for y in out) if isinstance(out, tuple) else (out.numpy(),)


def assert_equal_up_to_rounding(a, b, dtype, scale=1.0) -> None:
    """Assert equality up to rounding; exactly for integers."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    if not np.issubdtype(b.dtype, np.floating):
        np.testing.assert_array_equal(a, b)
        return
    tol = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-11}[np.dtype(dtype)] * scale
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(1.0, float(np.max(np.abs(b), initial=0.0))))
