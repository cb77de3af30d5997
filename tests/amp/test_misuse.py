"""Misuse of half precision: errors contain expected, got, and a fix. Where float32 and 16-bit floats are
mixed, the fix is autocast, inside which the same call works.
"""
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from common import fresh_session  # noqa: F401
from flowedu import amp, nn
from flowedu.errors import FlowError

HALVES = (flow.float16, flow.bfloat16)
A, B, V = flow.ones(2, 3), flow.ones(3, 2), flow.ones(1, 2, 6, 6)
# {call: f(dtype)}, which mixes float32 with that dtype
MIXED = {
    "@": lambda t: A @ B.to(t),
    "matmul": lambda t: flow.matmul(A.to(t), B),
    "bmm": lambda t: flow.bmm(A[None], B[None].to(t)),
    "mm": lambda t: flow.mm(A.to(t), B),
    "addmm": lambda t: flow.addmm(flow.ones(2, 2), A, B.to(t)),
    "einsum": lambda t: flow.einsum("ij,jk->ik", A, B.to(t)),
    "attention": lambda t: F.scaled_dot_product_attention(V, V.to(t), V),
    "Linear": lambda t: nn.Linear(3, 2).to(t)(A),
    "Linear of float32": lambda t: nn.Linear(3, 2)(A.to(t)),
    "Conv1d": lambda t: nn.Conv1d(2, 2, 3).to(t)(V[:, :, 0]),
    "Conv2d": lambda t: nn.Conv2d(2, 2, 3).to(t)(V),
    "ConvTranspose2d": lambda t: nn.ConvTranspose2d(2, 2, 3).to(t)(V),
    "LayerNorm": lambda t: nn.LayerNorm(6).to(t)(V),
    "LSTM": lambda t: nn.LSTM(3, 4).to(t)(A[None])[0],
    "GRU": lambda t: nn.GRU(3, 4).to(t)(A[None])[0],
    "RNN": lambda t: nn.RNN(3, 4).to(t)(A[None])[0],
    "GroupNorm": lambda t: nn.GroupNorm(1, 2).to(t)(V),
    "MultiheadAttention": lambda t: nn.MultiheadAttention(6, 2).to(t)(V[0], V[0], V[0])[0],
}


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", [n for n in MIXED if n != "MultiheadAttention" or hasattr(nn, n)])
def test_mixed_dtypes_are_refused_and_autocast_fixes_the_call(name, half):
    with pytest.raises(FlowError) as e:
        MIXED[name](half)
    assert "flow.amp.autocast" in e.value.fix and e.value.expected and e.value.got
    with amp.autocast("cpu", dtype=half):
        assert MIXED[name](half).dtype in (half, flow.float32)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_autocast_is_not_recommended_for_float64(half):
    with pytest.raises(FlowError) as e:
        A.double() @ B.to(half)
    assert "autocast" not in e.value.fix


class Predict(nn.Graph):
    def build(self, x):
        return x


@pytest.mark.parametrize("dtype", [flow.int32, flow.bool, flow.float64, "float16", float], ids=repr)
@pytest.mark.parametrize("call", [
    lambda t: amp.autocast("cpu", dtype=t), lambda t: Predict().config.enable_amp(dtype=t),
    lambda t: flow.function_config().auto_mixed_precision_data_type(t)])
def test_dtypes_other_than_16_bit_floats_are_refused(call, dtype):
    with pytest.raises(FlowError) as e:
        call(dtype)
    assert "float16" in e.value.expected and "bfloat16" in e.value.expected and e.value.got and e.value.fix


@pytest.mark.parametrize("device", ["tpu", "meta", "", None, 0, "cpu0"])
def test_an_unknown_device_type_is_refused(device):
    with pytest.raises(FlowError) as e:
        amp.autocast(device)
    assert "'cpu'" in e.value.expected and repr(device) in e.value.got and "autocast" in e.value.fix


@pytest.mark.skipif(flow.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", flow.device("cuda")])
def test_autocast_on_a_missing_gpu_is_refused_unless_disabled(device):
    with pytest.raises(FlowError, match="no GPU") as e:
        amp.autocast(device)
    assert 'autocast("cpu")' in e.value.fix
    with amp.autocast(device, enabled=False):  # as in programs that enable autocast only if a GPU exists
        assert (A @ B).dtype is flow.float32


def with_gradient():
    p = nn.Parameter(flow.ones(3))
    p.grad = flow.ones(3)
    return flow.optim.SGD([p], lr=0.1)


@pytest.mark.parametrize(("call", "words"), [
    (lambda s, o: s.step(o), "without a scale"),
    (lambda s, o: s.unscale_(o), "without a scale"),
    (lambda s, o: (s.scale(flow.ones(())), s.unscale_(o), s.unscale_(o)), "called twice"),
    (lambda s, o: (s.scale(flow.ones(())), s.step(o), s.unscale_(o)), "after step"),
    (lambda s, o: (s.scale(flow.ones(())), s.step(o), s.step(o)), "called twice"),
    (lambda s, o: (s.scale(flow.ones(())), s.update()), "nothing was stepped"),
    (lambda s, o: s.scale(3.0), "no tensor")])
def test_scaler_calls_in_another_order_are_refused(call, words):
    optimizer = with_gradient()
    with pytest.raises(FlowError, match=words) as e:
        call(amp.GradScaler(), optimizer)
    assert e.value.expected and e.value.got and "scaler." in e.value.fix or "update()" in e.value.fix
    off = amp.GradScaler(enabled=False)
    assert off.step(optimizer) is None and off.update() is None and off.unscale_(optimizer) is None


def test_float32_labels_with_logits_of_a_mixed_precision_job():
    """Blobs are never promoted, but autocast casts them."""
    import flowedu.typing as tp
    from common import constant

    def make(mixed):
        flow.clear_default_session()
        config = flow.function_config()
        config.enable_auto_mixed_precision(mixed)

        @flow.global_function("predict", config)
        def predict(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
            y = flow.matmul(x, flow.get_variable("w", (3, 3), initializer=constant(0.5)))
            return flow.nn.sigmoid_cross_entropy_with_logits(x, y if mixed else flow.cast(y, flow.float16))
        return predict

    assert make(True)(A.numpy()).dtype == "float32"
    with pytest.raises(FlowError) as e:
        make(False)(A.numpy())
    assert "autocast" in e.value.fix
