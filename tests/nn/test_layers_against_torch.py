"""Every layer against PyTorch's with the same parameters: values, gradients, state_dict, and statistics."""
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from .cases import IMAGE, LAYERS, RECURRENT  # noqa: E402
from .peers import check_module, modules  # noqa: E402


@pytest.mark.parametrize("case", LAYERS, ids=lambda c: f"{c[0]} {c[1]}")
def test_layers_equal_pytorchs(case):
    check_module(*case)


@pytest.mark.parametrize("case", RECURRENT, ids=lambda c: f"{c[0]} {c[1]}")
def test_recurrent_layers_equal_pytorchs(case):
    check_module(*case)


@pytest.mark.parametrize(("text", "specs", "call"), [
    ("nn.LSTM(3, 4, 2)", [(5, 2, 3), (2, 2, 4), (2, 2, 4)], "m(xs[0], (xs[1], xs[2]))"),
    ("nn.GRU(3, 4)", [(5, 2, 3), (1, 2, 4)], "m(xs[0], xs[1])"),
    ("nn.RNN(3, 4, bidirectional=True)", [(5, 3), (2, 4)], "m(xs[0], xs[1])"),
    ("nn.LSTMCell(3, 4)", [(2, 3), (2, 4), (2, 4)], "m(xs[0], (xs[1], xs[2]))"),
    ("nn.RNNCell(3, 4)", [(2, 3), (2, 4)], "m(xs[0], xs[1])"),
])
def test_recurrent_layers_with_an_initial_state_equal_pytorchs(text, specs, call):
    check_module(text, *specs, call=call)


ATTENTION = [
    ("nn.MultiheadAttention(6, 2)", [(4, 3, 6)], "m(xs[0], xs[0], xs[0])"),
    ("nn.MultiheadAttention(6, 2, bias=False, batch_first=True)", [(3, 4, 6), (3, 5, 6)],
     "m(xs[0], xs[1], xs[1])"),
    ("nn.MultiheadAttention(6, 3, kdim=5, vdim=7)", [(4, 2, 6), (5, 2, 5), (5, 2, 7)],
     "m(*xs, average_attn_weights=False)"),
    ("nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)", [(4, 3, 6), (5, 3, 6)],
     "m(xs[0], xs[1], xs[1], need_weights=False)"),
    ("nn.MultiheadAttention(6, 2)", [(4, 6), (5, 6)], "m(xs[0], xs[1], xs[1])"),
    ("nn.MultiheadAttention(6, 2)", [(4, 3, 6)],
     "m(xs[0], xs[0], xs[0], attn_mask=flow.triu(flow.ones(4, 4), 1) > 0)"),
    ("nn.MultiheadAttention(6, 2, add_zero_attn=True)", [(4, 3, 6), ("bool", (3, 4))],
     "m(xs[0], xs[0], xs[0], key_padding_mask=xs[1])"),
    ("nn.MultiheadAttention(6, 2)", [(4, 3, 6), (6, 4, 4)], "m(xs[0], xs[0], xs[0], attn_mask=xs[1])"),
    ("nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0)", [(4, 3, 6)], "m(xs[0])"),
    ("nn.TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', norm_first=True, batch_first=True)", [(3, 4, 6)],
     "m(xs[0])"),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6))",
     [(4, 3, 6), (4, 4)], "m(xs[0], xs[1])"),
    ("nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0)", [(4, 3, 6), (5, 3, 6)], "m(*xs)"),
    ("nn.Transformer(6, 2, 2, 1, 8, 0.0)", [(4, 3, 6), (5, 3, 6)], "m(*xs)"),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2)", [(4, 3, 6), (5, 3, 6)], "m(*xs)"),
]


@pytest.mark.parametrize(("text", "specs", "call"), ATTENTION, ids=[f"{c[0]} {c[2]}" for c in ATTENTION])
def test_attention_layers_equal_pytorchs(text, specs, call):
    check_module(text, *specs, call=call, tol=1e-7)


@pytest.mark.parametrize("text", ["nn.BatchNorm2d(4)", "nn.InstanceNorm2d(4, track_running_stats=True)",
                                  "nn.BatchNorm2d(4, track_running_stats=False)", "nn.Dropout(0.5)",
                                  "nn.Dropout2d(0.3)", "nn.AlphaDropout(0.3)", "nn.RReLU()"])
def test_layers_in_eval_mode_equal_pytorchs(text):
    check_module(text, IMAGE, train=False)


def test_keys_of_a_network():
    text = ("nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), "
            "nn.Sequential(nn.Flatten(), nn.Linear(8, 2)), nn.LSTM(2, 3, bidirectional=True), "
            "nn.MultiheadAttention(4, 2))")
    ours, theirs = modules(text)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
