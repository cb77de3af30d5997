"""Law: a batched call equals the stack of calls on single elements, for every op and every choice of batched
inputs.
"""
import itertools

import numpy as np
import pytest

from flowedu.autograd.batching import RULES, Batch, batched_call
from flowedu.core.eager.arrays import from_numpy

from .calls import attributes, cases, draw_values, input_name, label, types_of

# Ops without a batching rule, which are called for each element (always, or for some batched inputs), with
# reasons.
_BOTH, _PLACES = ("no letter of both inputs is in the output",
                  "indices of each element count from its own beginning")
LOOPED = {
    "as_strided": ("always", "it says where in memory"), "require": ("some", "tests a tensor of any shape"),
    "layer_norm_grad": ("always", "sums over what may be split"),
    "slice_part": ("some", "a device calls it"), "layer_norm": ("some", "a weight that has the batch"),
    **dict.fromkeys(("diagonal", "unfold"), ("some", "its two axes, or its one, may not be split")),
    "matmul": ("some", "a matrix for each element, of several rows of matrices"),
    **dict.fromkeys(("matmul_packed", "matmul_packed_bias", "matmul_packed_residual"),
                    ("some", "a matrix for each element")),
    "searchsorted": ("some", "a row for each element"),
    "inverted_residual": ("some", "weights for each element"),
    **dict.fromkeys(("lstm", "lstm_grad", "gru", "gru_grad", "rnn", "rnn_grad"),
                    ("some", "weights for each element")),
    **dict.fromkeys(("attention", "attention_grad"), ("some", "the leading axes are those of all inputs")),
    **dict.fromkeys(("conv2d", "conv2d_input_grad", "conv2d_weight_grad", "conv2d_last",
                     "conv2d_last_input_grad",
                     "conv2d_last_weight_grad", "conv2d_last_norm"), ("some", _BOTH)),
    **dict.fromkeys(("gather", "gather_grad", "gather_part", "gather_part_grad", "gather_nd", "scatter_nd",
                     "scatter_nd_update"), ("some", _PLACES)),
}
CALLS = cases(lambda op: not op.mutates and not op.random and not op.effect)
SIZE = 3


def subsets(op, example) -> list[tuple[bool, ...]]:
    """Return the choices of batched inputs: all, each alone, all but one."""
    n = len(example["shapes"])
    one = [tuple(i == k for i in range(n)) for k in range(n)]
    return (list(dict.fromkeys([(True,) * n, *one, *(tuple(not b for b in o) for o in one if n > 2)])) if n
            else [])


def draw_batched_arrays(op, example, batched, size=SIZE):
    rng = np.random.default_rng(0)
    arrays = []
    for i, (shape, dtype, b) in enumerate(zip(example["shapes"], types_of(op, example, np.float64), batched)):
        made = [draw_values(op.domain.get(input_name(op, i), "any"), shape, dtype, rng, i)
                for _ in range(size if b else 1)]
        arrays.append(np.stack(made) if b else made[0])
    return arrays


def answers(result) -> list[np.ndarray]:
    return [y.peek() for y in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_a_batch_is_the_stack_of_its_elements(case):
    op, example = case
    attrs = attributes(op, example)
    for batched in subsets(op, example):
        arrays = draw_batched_arrays(op, example, batched)
        got = answers(batched_call(op, [from_numpy(a) for a in arrays], batched, attrs))
        rows = [answers(op.call(tuple(from_numpy(np.asarray(a[k]) if b else a)
                                      for a, b in zip(arrays, batched)), attrs))
                for k in range(SIZE)]
        for y, want in zip(got, map(np.stack, zip(*rows)), strict=True):
            assert y.dtype == want.dtype and y.shape == want.shape, batched
            np.testing.assert_allclose(y, want, rtol=1e-9, atol=1e-11, equal_nan=True, err_msg=str(batched))


def rule_of(op, example, batched) -> str:
    batch = Batch(op, [from_numpy(a) for a in draw_batched_arrays(op, example, batched)], batched,
                  attributes(op, example))
    return next((rule.__name__ for rule in RULES if rule(batch) is not None), "looped")


def test_ops_without_a_batching_rule_are_listed():
    """A new op is either listed here or has a rule that follows from its equation."""
    found = {}
    for op, example in CALLS:
        for batched in subsets(op, example):
            found.setdefault(op.name, []).append(rule_of(op, example, batched))
    looped = {name: "always" if {*used} == {"looped"} else "some" for name, used in found.items()
              if "looped" in used}
    assert looped == {name: how for name, (how, _) in LOOPED.items()}
    used = set(itertools.chain(*found.values()))
    assert used == {"elementwise", "leading", "folded", "repeated", "looped"}
