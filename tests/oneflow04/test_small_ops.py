"""Smaller ops of OneFlow 0.4: padding, fused ops, explicit gradient ops, and counts; each equals its
composition, eagerly and in a job.
"""
import numpy as np
import pytest

import flowedu as flow
from common import f32, fresh_session, refused, run  # noqa: F401

nn, math = flow.nn, flow.math
X = np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3)
BCE, S = f32(2, 3, 4, 5), f32(2, 3, 6, 6, seed=1)


def compare_eager_and_job(f, *arrays):
    """Return f's results as a list after checking that they are the same eagerly and in a job."""
    eager = f(*map(flow.tensor, arrays))
    several = isinstance(eager, (tuple, list))
    job = run(f, *arrays) if not several else [run(lambda *xs, i=i: f(*xs)[i], *arrays)
                                                             for i in range(len(eager))]
    eager = [y.numpy() for y in eager] if several else [eager.numpy()]
    for a, b in zip(eager, job if several else [job]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return eager


def gradient(f, *arrays):
    """Return the gradients of (f * f).sum() with respect to each array."""
    xs = [flow.tensor(a, requires_grad=True) for a in arrays]
    y = f(*xs)
    (y * y).sum().backward()
    return [x.grad.numpy() for x in xs]


@pytest.mark.parametrize("f, mode, options", [
    (lambda p: lambda x: flow.zero_pad2d(x, p), "constant", {}),
    (lambda p: lambda x: flow.constant_pad2d(x, p, 2.5), "constant", {"constant_values": 2.5}),
    (lambda p: lambda x: flow.reflection_pad2d(x, p), "reflect", {}),
    (lambda p: lambda x: flow.replication_pad2d(x, p), "edge", {})])
@pytest.mark.parametrize("padding", [1, [2, 2, 1, 1], (0, 3, 2, 0), 0])
def test_padding_functions_equal_numpys(f, mode, options, padding):
    left, right, top, bottom = [padding] * 4 if isinstance(padding, int) else padding
    want = np.pad(BCE, ((0, 0), (0, 0), (top, bottom), (left, right)), mode, **options)
    got, = compare_eager_and_job(f(padding), BCE)
    np.testing.assert_array_equal(got, want)
    slopes, = gradient(f(padding), BCE)
    places = np.pad(np.arange(BCE.size).reshape(BCE.shape), ((0, 0), (0, 0), (top, bottom), (left, right)),
                    mode, **({"constant_values": -1} if mode == "constant" else {}))
    total = np.zeros(BCE.size, np.float32)
    np.add.at(total, places[places >= 0], 2 * want[places >= 0])
    np.testing.assert_allclose(slopes, total.reshape(BCE.shape), rtol=1e-5)


def test_the_documented_padding_example():
    got, = compare_eager_and_job(lambda x: flow.reflection_pad2d(x, [2, 2, 1, 1]), X)
    assert got[0, 0, 0].tolist() == [5, 4, 3, 4, 5, 4, 3] and got.shape == (1, 2, 5, 7)


@pytest.mark.parametrize("padding", [4, [1, 1, 1], [0, 5, 0, 0], [0, 0, 4, 0], -1, "SAME", None])
def test_a_border_that_does_not_fit(padding):
    for f in flow.zero_pad2d, flow.reflection_pad2d, flow.replication_pad2d, flow.constant_pad2d:
        with refused(AssertionError, f.__name__, "padding"):
            f(flow.tensor(BCE), padding)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "same_lower"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kernel, strides, dilations", [((3, 3), (1, 1), (1, 1)), ((2, 4), (2, 1), (1, 1)),
                                                        ((3, 2), (1, 3), (2, 2))])
def test_same_padding_matches_the_convolutions(mode, layout, kernel, strides, dilations):
    x = S if layout == "NCHW" else np.moveaxis(S, 1, -1).copy()
    padded, = compare_eager_and_job(lambda t: flow.same_padding(t, mode, layout, kernel, strides, dilations),
                                    x)
    weight = flow.tensor(f32(4, 3, *kernel) if layout == "NCHW" else f32(4, *kernel, 3))
    whole = nn.conv2d(flow.tensor(x), weight, strides, mode.upper(), layout, dilations=dilations)
    valid = nn.conv2d(flow.tensor(padded), weight, strides, "VALID", layout, dilations=dilations)
    np.testing.assert_allclose(whole.numpy(), valid.numpy(), rtol=1e-4, atol=1e-5)


def test_pad_grad_is_the_gradient_of_pad():
    pairs = ((0, 1), (2, 0), (1, 1))
    x = flow.tensor(f32(2, 3, 4), requires_grad=True)
    y = flow.pad(x, pairs)
    dy = f32(*y.shape, seed=3)
    (y * flow.tensor(dy)).sum().backward()
    got, = compare_eager_and_job(lambda t: flow.pad_grad(t, pairs), dy)
    np.testing.assert_array_equal(got, x.grad.numpy())


# fused ops
def test_fused_ops_equal_their_compositions():
    v, b = f32(2, 3, 4), f32(4, seed=2)
    got, = compare_eager_and_job(lambda v, b: nn.fused_bias_add_gelu(v, b, "NHC"), v, b)
    np.testing.assert_allclose(got, math.gelu(flow.tensor(v + b)).numpy(), rtol=1e-5, atol=1e-6)
    got = run(lambda v, b: nn.fused_bias_add_dropout(v, b, "NHC", rate=0.5), v, b)
    np.testing.assert_allclose(got, v + b, rtol=1e-6)  # nothing is dropped in a predict job
    m = f32(2, 3, 3)
    for f in nn.fused_scale_tril, math.fused_scale_tril:
        got, = compare_eager_and_job(lambda m, f=f: f(m, 1, -9.0, 0.5), m)
        np.testing.assert_allclose(got, np.where(np.tri(3, k=1) > 0, 0.5 * m, -9), rtol=1e-6)
    for f in nn.fused_scale_tril_softmax_dropout, math.fused_scale_tril_softmax_dropout:
        got = run(lambda m, f=f: f(m, 0, float("-inf"), 0.5, 0.1), m)
        e = np.exp(0.5 * m) * np.tri(3)
        np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_fused_dropout_while_training():
    def body(v, b):
        y = nn.fused_bias_add_dropout(v, b, "NHC", rate=0.5)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(
            flow.get_variable("w", (1,), initializer=flow.ones_initializer()) * math.reduce_sum(y))
        return y

    v, b = np.ones((8, 8, 8), np.float32), np.ones(8, np.float32)
    assert set(run(body, v, b, type="train").ravel().tolist()) == {0.0, 4.0}


def test_attention_of_joined_heads():
    x = f32(5, 2, 3 * 3 * 4)                                                # length 5, batch 2, 3 heads of 4
    qmk, value = compare_eager_and_job(lambda t: nn.fused_self_attention_query_mul_key_and_value(t, 4, 0.5),
                                       x)
    q, k, v = np.moveaxis(x.reshape(5, 2, 3, 3, 4), 3, 0).transpose(0, 2, 3, 1, 4)
    np.testing.assert_allclose(qmk, 0.5 * q @ k.swapaxes(-1, -2), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(value, v)
    with refused(AssertionError, "head_size"):
        nn.fused_self_attention_query_mul_key_and_value(flow.tensor(x), 5)


def test_fused_scale_mask_softmax():
    mask = nn.random_mask_like(flow.ones(1000), 0.25, seed=3)
    assert mask.dtype is flow.int8 and 650 < mask.numpy().sum() < 850
    with refused(AssertionError, "rate"):
        nn.random_mask_like(flow.ones(2), 1.0)


@pytest.mark.parametrize("padding, output_padding, strides, dilations", [((0, 0), None, 2, None),
                                                                         ((2, 4), (1, 0), 2, 1),
                                                                        ((2, 2), (2, 1), (3, 2), (1, 2))])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_transposed_convolution_in_pytorchs_sizes(padding, output_padding, strides, dilations, layout):
    if layout == "NHWC" and dilations not in (None, 1):
        return
    x, w = f32(2, 3, 5, 6), f32(3, 4, 3, 3, seed=4)
    want = flow.nn.functional.conv_transpose2d(
        flow.tensor(x), flow.tensor(w), stride=strides, padding=[p // 2 for p in padding],
        output_padding=output_padding or 0, dilation=dilations or 1).numpy()
    turned = (lambda a: np.moveaxis(a, 1, -1).copy()) if layout == "NHWC" else lambda a: a
    got, = compare_eager_and_job(lambda a, b: nn.torch_conv2d_transpose(
        a, b, output_padding, strides, list(padding), layout, dilations=dilations), turned(x), turned(w))
    np.testing.assert_allclose(got, turned(want), rtol=1e-4, atol=1e-5)


# explicit gradient ops
@pytest.mark.parametrize("f, by_hand", [
    (math.gelu, lambda x, y, dy: math.gelu_grad(x, dy)), (math.sigmoid,
                                                          lambda x, y, dy: math.sigmoid_grad(y, dy)),
    (nn.softmax, lambda x, y, dy: nn.softmax_grad(y, dy)),
    (lambda x: nn.softmax(x, axis=0), lambda x, y, dy: nn.softmax_grad(y, dy, axis=0))])
def test_gradient_ops_match_autograd(f, by_hand):
    x, dy = flow.tensor(f32(3, 4), requires_grad=True), f32(3, 4, seed=5)
    y = f(x)
    (y * flow.tensor(dy)).sum().backward()
    got, = compare_eager_and_job(by_hand, x.detach().numpy(), y.detach().numpy(), dy)
    np.testing.assert_allclose(got, x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_gradient_ops_of_layer_norm_match_autograd():
    x, g, b = (flow.tensor(a, requires_grad=True) for a in (f32(4, 6), f32(6, seed=1), f32(6, seed=2)))
    y, dy = flow.nn.functional.layer_norm(x, (6,), g, b), f32(4, 6, seed=5)
    (y * flow.tensor(dy)).sum().backward()
    a = x.detach().numpy()
    mean, inv = a.mean(1), 1 / np.sqrt(a.var(1) + 1e-5)
    norm = (a - mean[:, None]) * inv[:, None]
    diff, dbeta, dgamma = compare_eager_and_job(lambda *t: flow.layers.layer_norm_param_grad(*t), dy, norm,
                                                g.detach().numpy())
    dx, = compare_eager_and_job(lambda *t: flow.layers.layer_norm_grad(*t), diff, a, mean, inv)
    for got, want in (dx, x.grad), (dbeta, b.grad), (dgamma, g.grad):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)


# ---- counts
def test_unique_with_counts():
    ids = np.array([7, 3, 7, 9, 3, 7], np.int32)
    y, idx, count, n = compare_eager_and_job(flow.experimental.unique_with_counts, ids)
    assert y.tolist() == [7, 3, 9, 0, 0, 0] and idx.tolist() == [0, 1, 0, 2, 1, 0]
    assert count.tolist() == [3, 2, 1, 0, 0, 0] and n.tolist() == [3] and idx.dtype == np.int32

    def known(x):
        y, _, _, n = flow.experimental.unique_with_counts(x, flow.int64)
        return flow.sync_dynamic_resize(y, n)
    assert known(flow.tensor(ids)).tolist() == [7, 3, 9]
    assert run(known, ids, returns=flow.typing.ListNumpy)[0].tolist() == [7, 3, 9]


def test_slices_of_one_index_are_added():
    i, v = np.array([[4, 1], [4, 0]], np.int64), f32(2, 2, 3)
    at, total, n = compare_eager_and_job(flow.experimental.indexed_slices_reduce_sum, i, v)
    assert at.ravel().tolist()[:3] == [4, 1, 0] and n.tolist() == [3]
    np.testing.assert_allclose(total.reshape(4, 3)[:3], [v[0, 0] + v[1, 0], v[0, 1], v[1, 1]], rtol=1e-6)


def test_count_not_finite():
    a = np.array([1, np.inf, -np.inf, np.nan, 0], np.float32)
    assert compare_eager_and_job(flow.count_not_finite, a)[0].tolist() == [3]
    assert (compare_eager_and_job(lambda a, b: flow.multi_count_not_finite([a, b]), a, a[:2])[0].tolist()
            == [4])


# aliases, and ops on the variables of a job
def test_second_names_compute_the_same():
    x = f32(3, 4)
    for f, want in ((math.sigmoid_v2, math.sigmoid), (math.tanh_v2, math.tanh),
                    (flow.amp_white_identity, flow.identity),
                    (flow.cast_to_static_shape, flow.identity), (math.two_stage_reduce_max, math.reduce_max),
                    (lambda t: math.two_stage_reduce_min(t, axis=1, keepdims=True),
                     lambda t: math.reduce_min(t, axis=1, keepdims=True))):
        np.testing.assert_array_equal(compare_eager_and_job(f, x)[0], compare_eager_and_job(want, x)[0])
    assert math.unsorted_segment_sum is flow.unsorted_segment_sum
    np.testing.assert_allclose(compare_eager_and_job(flow.experimental.square_sum, x)[0],
                               [np.square(x).sum()], rtol=1e-5)
    np.testing.assert_array_equal(compare_eager_and_job(
        lambda t: flow.experimental.logical_slice(t, [(1, 3, 1), (0, 4, 2)]), x)[0], x[1:3, 0:4:2])
    assert flow.to(flow.ones(2), flow.float64).dtype is flow.float64
    w = flow.nn.Parameter(flow.ones(2))
    rates = [flow.optim.lr_scheduler.CosineScheduler(flow.optim.SGD([w], lr=1.0), 10, 0.1),
             flow.optim.lr_scheduler.CosineDecayLR(flow.optim.SGD([w], lr=1.0), 10, 0.1)]
    for _ in range(12):
        assert rates[0].get_last_lr() == rates[1].get_last_lr()
        for r in rates:
            r.step()


def test_a_slice_of_a_variable_is_assigned():
    def body(x):
        v = flow.get_variable("v", (4, 3), initializer=flow.zeros_initializer())
        with flow.experimental.name_scope("inside"):
            flow.experimental.logical_slice_assign(v, x, [(1, 3, 1), (None, None, None)])
        return flow.identity(v)
    run(body, np.ones((2, 3), np.float32))
    assert flow.get_all_variables()["v"].numpy().sum(1).tolist() == [0, 3, 3, 0]


def test_scope_hints_and_unittest_environment(monkeypatch):
    with pytest.warns(UserWarning,
                      match="stage_id_hint"), flow.experimental.scope.config(pipeline_stage_id_hint=1):
        pass
    with refused(ValueError, "pipeline_stage", fix=True), flow.experimental.scope.config(pipeline_stage=1):
        pass
    env = flow.unittest.env
    for name in ("DEVICE_NUM", "NODE_NUM", "NODE_LIST", "WORLD_SIZE", "ENABLE_EAGER", "ENABLE_TYPING_CHECK"):
        monkeypatch.delenv(f"ONEFLOW_TEST_{name}", raising=False)
    assert (env.device_num(), env.node_size(), env.world_size(), env.node_list()) == (1, 1, 1, [])
    assert not (env.has_node_list() or env.has_world_size() or env.eager_execution_enabled()
                or env.typing_check_enabled())
    monkeypatch.setenv("ONEFLOW_TEST_DEVICE_NUM", "2")
    monkeypatch.setenv("ONEFLOW_TEST_NODE_LIST", "a,b")
    assert (env.node_size(), env.world_size(), env.has_node_list()) == (2, 4, True)

    @flow.unittest.skip_unless_2n2d()
    @flow.unittest.num_nodes_required(2)
    def runs():
        return 1
    assert runs() == 1
    with pytest.raises(Exception, match="node_num is 1 and device_num is 2"):
        flow.unittest.skip_unless_1n2d()(lambda: None)()
