"""Matrix products of 16-bit floats: for all sizes and strides, float32 sums rounded once; scratch is a few
panels.
"""
import numpy as np
import pytest

import flowedu as flow
from amp.test_every_op import EPSILON, HALVES, bits
from amp.test_slices import scratch, threads  # noqa: F401  (a fixture)
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.spec import Spec

# around the block sizes (256 x 256 x 512), small row counts (8), and their blocks (1024 columns, 2048 deep)
SIZES = [(1, 1, 1), (3, 5, 2), (1, 2050, 1030), (7, 2049, 66), (8, 300, 1025), (9, 513, 300), (257, 100, 259),
         (300, 1030, 40), (256, 512, 256), (2, 0, 3), (0, 4, 3)]
LAYOUTS = {"as it is": lambda x: x, "transposed": lambda x: x.t().contiguous().t(),
           "every second": lambda x: flow.stack([x, x], 2).reshape(x.shape[0], 2 * x.shape[1])[:, ::2]}


def draw_half(shape, half, seed):
    return flow.tensor(np.random.default_rng(seed).normal(size=shape).astype("f4")).to(half)


def assert_product_within_rounding(got, a, b, half):
    """Assert equality within a rounding of the result plus the error of float32 sums."""
    a, b = (bits(x).astype("f8") for x in (a, b))
    want, room = a @ b, np.abs(a) @ np.abs(b)
    assert got.dtype is half and tuple(got.shape) == want.shape
    assert (np.abs(bits(got) - want) <= 0.51 * EPSILON[half] * np.abs(want) + 2.0 ** -20 * room + 1e-7).all()


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("layouts", [(i, j) for i in LAYOUTS for j in LAYOUTS], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_any_size_and_stride_are_rounded_once(size, layouts, half, threads):  # noqa: F811
    m, k, n = size
    a, b = LAYOUTS[layouts[0]](draw_half((m, k), half, 0)), LAYOUTS[layouts[1]](draw_half((k, n), half, 1))
    for count in (1, 3):
        threads(count)
        assert_product_within_rounding(a @ b, a, b, half)


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("shapes", [((4, 70, 40), (40, 600)), ((2, 3, 5, 300), (300, 400)),
                                    ((5, 6, 7), (5, 7, 8)),
                                    ((2, 1, 33, 20), (3, 20, 17)), ((2, 300, 64), (2, 64, 300)),
                                    ((64, 1, 40), (40, 90))],
                         ids=str)
def test_batched_products_are_rounded_once(shapes, half, threads):  # noqa: F811
    a, b = draw_half(shapes[0], half, 0), draw_half(shapes[1], half, 1)
    for count in (1, 3):
        threads(count)
        assert_product_within_rounding(a @ b, a, b, half)
        turned = a.transpose(-1, -2).contiguous().transpose(-1, -2)
        assert_product_within_rounding(turned @ b, a, b, half)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_gradients_of_a_linear_layer_are_rounded_once(half):
    layer, x = flow.nn.Linear(300, 70).to(half), draw_half((40, 300), half, 0).requires_grad_()
    layer(x).sum().backward()
    ones = flow.ones(40, 70).to(half)
    assert_product_within_rounding(x.grad, ones, layer.weight.detach(), half)
    assert_product_within_rounding(layer.weight.grad, ones.t(), x.detach(), half)


def test_scratch_does_not_grow_with_the_operands():
    """Scratch does not grow with the operands; for few rows it is smaller still."""
    op = REGISTRY["matmul"]
    for m, k, n in ((4096, 4096, 4096), (1 << 16, 1 << 10, 1 << 16), (1, 1 << 14, 1 << 16)):
        for count in (1, 2):
            specs = [Spec((m, k), flow.bfloat16), Spec((k, n), flow.bfloat16)]
            assert 0 < scratch(op, specs, (False, False), count) <= count * (1 << 21 if m > 8 else 1 << 16)
