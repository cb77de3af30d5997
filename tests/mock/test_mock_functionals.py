"""oneflow._C under the mock: every function against its formula in NumPy."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import ArgumentError
from flowedu.mock.insides import functionals as C
from flowedu.mock.insides.attention import SDPBackend, sdpa_kernel

seeds = st.integers(0, 2**31)
sizes = st.integers(1, 4)


def draw_normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def assert_shape_and_values(y, want):
    assert tuple(y.shape) == want.shape
    np.testing.assert_allclose(y.numpy(), want, 1e-9, 1e-12)


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@given(seeds, sizes, sizes, sizes, st.booleans(), st.booleans(), st.sampled_from([1.0, 0.5]))
def test_matmul_equals_its_formula(seed, m, n, k, ta, tb, alpha):
    a, b = draw_normal(seed, 2, m, k), draw_normal(seed + 1, 2, k, n)
    x, y = (np.swapaxes(v, 1, 2).copy() if t else v for v, t in ((a, ta), (b, tb)))
    assert_shape_and_values(C.matmul(flow.tensor(x), flow.tensor(y), ta, tb, alpha), alpha * a @ b)


@given(seeds, st.integers(-3, 2), sizes)
def test_gather_transpose_cast(seed, axis, n):
    x, i = draw_normal(seed, 2, 3, 4), np.random.default_rng(seed).integers(0, (2, 3, 4)[axis], (n, 2))
    assert_shape_and_values(C.gather(flow.tensor(x), flow.tensor(i), axis), np.take(x, i, axis))
    perm = np.random.default_rng(seed).permutation(3)
    assert_shape_and_values(C.transpose(flow.tensor(x), perm=perm.tolist()), x.transpose(perm))
    assert C.cast(flow.tensor(x), flow.float32).dtype is flow.float32 and C.amp_white_identity(n) == n
    assert_shape_and_values(C.quick_gelu(flow.tensor(x)), x / (1 + np.exp(-1.702 * x)))
    np.testing.assert_array_equal(C.global_arange(2, 9, 3).numpy(), [2, 5, 8])


@given(seeds, sizes, st.integers(2, 4))
def test_losses_equal_their_formulas(seed, n, k):
    x, t = draw_normal(seed, 2, n, k), np.random.default_rng(seed).integers(0, k, (2, n))
    picked = -np.log(np.take_along_axis(soft(x), t[..., None], -1))[..., 0]
    assert_shape_and_values(C.sparse_softmax_cross_entropy(flow.tensor(x), flow.tensor(t)), picked)
    p = soft(draw_normal(seed + 1, 2, n, k))
    assert_shape_and_values(C.softmax_cross_entropy(flow.tensor(x), flow.tensor(p)),
                            -(p * np.log(soft(x))).sum(-1))
    assert_shape_and_values(C.cross_entropy(flow.tensor(x[0]), flow.tensor(t[0])), picked[0].mean())
    logits, dy = flow.tensor(x, requires_grad=True), flow.tensor(draw_normal(seed + 2, 2, n))
    C.softmax_cross_entropy(logits, flow.tensor(p)).backward(dy)
    assert_shape_and_values(C.softmax_cross_entropy_grad(dy, flow.tensor(p), flow.tensor(soft(x))),
                            logits.grad.numpy())


def test_normal_is_the_top_level_function():
    flow.manual_seed(3)
    want, out = flow.normal(1.0, 2.0, (2, 3)), flow.empty(2, 3)
    flow.manual_seed(3)
    assert C.normal(1.0, 2.0, size=(2, 3), out=out) is out and flow.equal(out, want)


@given(seeds, sizes, st.integers(2, 4))
def test_other_functions_equal_their_formulas(seed, n, k):
    x, y = draw_normal(seed, n, 3, k), draw_normal(seed + 1, n, 3, k)
    t, p = np.random.default_rng(seed).integers(0, k, (n, 3)), soft(x)
    assert_shape_and_values(C.sparse_cross_entropy(flow.tensor(p), flow.tensor(t)),
                            -np.log(np.take_along_axis(p, t[..., None], -1))[..., 0])
    d = np.abs(x - y)
    assert_shape_and_values(C.smooth_l1_loss(flow.tensor(x), flow.tensor(y), 0.5, "none"),
                            np.where(d < 0.5, d * d, d - 0.25))
    assert_shape_and_values(C.bias_add(flow.tensor(x), flow.tensor(y[0, :, 0]), 1), x + y[0, :, :1])
    assert_shape_and_values(C.flatten(flow.tensor(x), 1), x.reshape(n, -1))
    assert_shape_and_values(C.reshape_like(flow.tensor(x), flow.ones(3, n * k)), x.reshape(3, -1))
    assert_shape_and_values(C.reduce_sum_like(flow.tensor(x), flow.ones(1, 3), [0, 2]), x.sum((0, 2))[None])
    parts = C.split_like(flow.tensor(x), [flow.ones(1, 1), flow.ones(1, 2)], 1)
    assert_shape_and_values(parts[0], x[:, :1])
    assert_shape_and_values(parts[1], x[:, 1:])
    np.testing.assert_array_equal(C.arg_sort(flow.tensor(x), "DESCENDING").numpy(),
                                  np.argsort(-x, -1, kind="stable"))
    np.testing.assert_array_equal(C.arg_sort(flow.tensor(x)).numpy(), np.argsort(x, -1, kind="stable"))


@given(seeds, st.integers(1, 2))
def test_norms_equal_their_formulas(seed, begin):
    x = draw_normal(seed, 2, 3, 4)
    axes, shape = tuple(range(begin, 3)), x.shape[begin:]
    g, b = draw_normal(seed + 1, *shape), draw_normal(seed + 2, *shape)
    want = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    assert_shape_and_values(C.layer_norm(flow.tensor(x), begin), want)
    assert_shape_and_values(C.layer_norm_affine(flow.tensor(x), flow.tensor(g), flow.tensor(b), begin),
                            want * g + b)
    root = x / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-6)
    assert_shape_and_values(C.rms_norm(flow.tensor(x), None, shape), root)
    assert_shape_and_values(C.rms_norm(flow.tensor(x), flow.tensor(g), shape), root * g)


@given(seeds, st.integers(-1, 2), st.integers(-1, 1))
def test_fused_chains_of_attention_equal_their_formulas(seed, axis, diagonal):
    x = draw_normal(seed, 2, 3, 3)
    b = draw_normal(seed + 1, x.shape[axis])
    along = x + b.reshape([-1 if i == axis % 3 else 1 for i in range(3)])
    assert_shape_and_values(C.fused_bias_add_dropout(flow.tensor(x), flow.tensor(b), 0.0, axis), along)
    assert_shape_and_values(C.fused_bias_add_gelu(flow.tensor(x), flow.tensor(b), axis),
                            flow.nn.functional.gelu(flow.tensor(along)).numpy())
    low = np.tril(np.ones((3, 3), bool), diagonal)
    assert_shape_and_values(C.fused_scale_tril(flow.tensor(x), diagonal, 7.0, 0.5),
                            np.where(low, 0.5 * x, 7.0))
    for y in C.fused_scale_tril_softmax_mask_scale(flow.tensor(x), 0.0, diagonal, 0.5, -1e4):
        assert_shape_and_values(y, soft(np.where(low, 0.5 * x, -1e4)))
    mask = np.random.default_rng(seed).integers(0, 2, (2, 1, 3))
    for y in C.fused_scale_mask_softmax_dropout(flow.tensor(x), flow.tensor(mask), -1e4, 0.5, 0.0):
        assert_shape_and_values(y, soft(np.where(mask, 0.5 * x, -1e4)))
    dropped, whole = C.fused_scale_mask_softmax_dropout(flow.tensor(x), flow.tensor(mask), -1e4, 0.5, 0.5)
    kept = dropped.numpy() != 0
    np.testing.assert_allclose(dropped.numpy()[kept], 2 * whole.numpy()[kept])


@given(seeds, sizes, st.booleans(), st.integers(0, 2))
def test_feature_interactions_equal_their_formulas(seed, n, own, padding):
    features = [draw_normal(seed + i, 2, *([n] if i else []), 3) for i in range(2)]
    x = np.concatenate([f.reshape(2, -1, 3) for f in features], 1)
    r, c = np.tril_indices(n + 1, 0 if own else -1)
    products, head = np.einsum("bie,bje->bij", x, x)[:, r, c], draw_normal(seed + 5, 2, 2)
    given_ = [flow.tensor(f) for f in features]
    assert_shape_and_values(C.fused_dot_feature_interaction(given_, flow.tensor(head), own, padding),
                            np.concatenate([head, products, np.zeros((2, padding))], 1))
    r, c = np.tril_indices(n + 1, -1)
    assert_shape_and_values(C.fused_dot_feature_interaction(given_, pooling="sum"),
                            (x[:, r] * x[:, c]).sum(1))
    a = draw_normal(seed, 2, 3)
    a0 = draw_normal(seed + 1, 2, 3)
    w = draw_normal(seed + 2, 1, 3)
    b = draw_normal(seed + 3, 3)
    assert_shape_and_values(C.fused_cross_feature_interaction(*map(flow.tensor, (a, w, a0, b))),
                            a0 * (a @ w.T) + b + a)
    w = draw_normal(seed + 2, 3, 3)
    assert_shape_and_values(C.fused_cross_feature_interaction(*map(flow.tensor, (a, w, a0, b)), "matrix"),
                            a0 * (a @ w.T + b) + a)


def test_unsupported_options_are_refused():
    x = flow.ones(2, 3)
    with pytest.raises(ArgumentError, match="no such pooling"):
        C.fused_dot_feature_interaction([x], pooling="max")
    with pytest.raises(ArgumentError, match="no such mode"):
        C.fused_cross_feature_interaction(x, x, x, x, "scalar")


def test_kernel_selection_is_accepted():
    with sdpa_kernel([SDPBackend.MATH]):
        pass


@pytest.mark.parametrize("name", "Float Double Half BFloat16 Int Long Char Byte Bool".split())
def test_tensor_types_are_dtypes(name):
    kind = getattr(flow, name + "Tensor")
    assert (flow.ones(2).type(kind).dtype is kind(1).dtype
            and flow.ones(2).type(kind).type() == f"flowedu.{name}Tensor")
