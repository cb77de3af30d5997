"""model.half(), model.bfloat16(): every layer and loss runs forward, backward, and a step in 16 bits, close
to the same layer in float32.
"""
import re

import numpy as np
import pytest

import flowedu as flow
from amp.test_every_op import every_pair
from flowedu import nn
from flowedu.errors import FlowError
from nn.cases import IMAGE, LAYERS, LINE, RECURRENT, VOLUME, array

HALVES = (flow.float16, flow.bfloat16)
EPSILON = {flow.float16: 2.0 ** -10, flow.bfloat16: 2.0 ** -7}
PAIR, ROW, CLASSES = ((3, 4), (3, 4)), (4, 3, 6), ("int", 4, (6,))
UNITS = (("unit", (3, 4)), ("unit", (3, 4)))
# (text, inputs), as nn/cases.py
REST = [
    *[(f"nn.{n}()", *PAIR) for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")],
    ("nn.CrossEntropyLoss(label_smoothing=0.1)", (6, 4), CLASSES), ("nn.NLLLoss()", (6, 4), CLASSES),
    ("nn.CrossEntropyLoss()", (2, 4, 3), ("simplex", (2, 4, 3))),
    ("nn.BCELoss()", *UNITS), ("nn.BCEWithLogitsLoss()", (3, 4), ("unit", (3, 4))),
    ("nn.KLDivLoss(reduction='batchmean')", (3, 4), ("simplex", (3, 4))),
    ("nn.PoissonNLLLoss()", (3, 4), ("positive", (3, 4))),
    ("nn.GaussianNLLLoss()", *PAIR, ("positive", (3, 4))), ("nn.MarginRankingLoss(0.3)", (7,), (7,),
                                                            ("sign", (7,))),
    ("nn.HingeEmbeddingLoss()", (7,), ("sign", (7,))), ("nn.SoftMarginLoss()", (3, 4), ("sign", (3, 4))),
    ("nn.CosineEmbeddingLoss()", (5, 3), (5, 3), ("sign", (5,))), ("nn.TripletMarginLoss()", (5, 3), (5, 3),
                                                                   (5, 3)),
    ("nn.MultiLabelSoftMarginLoss()", (3, 4), ("unit", (3, 4))), ("nn.CombinedMarginLoss(1.0, 0.2, 0.1)",
                                                                  ("unit", (6, 4)), CLASSES),
    ("nn.MultiMarginLoss()", (6, 4), CLASSES), ("nn.MultiLabelMarginLoss()", (6, 4), ("int", 4, (6, 4))),
    ("nn.MultiheadAttention(6, 2)", ROW, ROW, ROW), ("nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0)", ROW),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6))", ROW),
    ("nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0)", ROW, ROW), ("nn.Transformer(6, 2, 1, 1, 8, 0.0)",
                                                                     ROW, ROW),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2)", ROW, ROW),
    ("nn.QuickGELU()", (3, 5)), ("nn.RReLU(0.2, 0.2)", (3, 5)), ("nn.SyncBatchNorm(4)", IMAGE),
    ("nn.MaxUnpool1d(2)", LINE, ("int", 9, LINE)), ("nn.MaxUnpool2d(2)", IMAGE, ("int", 9, IMAGE)),
    ("nn.MaxUnpool3d(2)", VOLUME, ("int", 9, VOLUME)),
    *[(f"nn.{n}(0.0)", s) for n, s in (("Dropout", ROW), ("Dropout1d", LINE), ("Dropout2d", IMAGE),
                                       ("Dropout3d", VOLUME), ("AlphaDropout", ROW))],
]
REFUSED = {"CTCLoss"}                                      # log probabilities are float32 (as in PyTorch)
RECORDS = {"CoinFlip", "CropMirrorNormalize", *(f"{o}{n}" for o in ("OFRecord", "Ofrecord") for n in (
    "Reader", "RawDecoder", "BytesDecoder")), "OFRecordImageDecoder",
    "OFRecordImageDecoderRandomCrop"}                      # no floating input
HOLDERS = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
CASES = [*LAYERS, *RECURRENT, *REST]


def collect_tensors(y) -> list:
    return [y] if isinstance(y, flow.Tensor) else [z for x in y or () for z in collect_tensors(x)]


def build_layer(text: str, half=None):
    """Build the layer with values that `half` represents exactly."""
    flow.manual_seed(0)
    m = eval(text, {"nn": nn})
    with flow.no_grad():
        for p in m.parameters():
            p.copy_(p.to(half).float() if half is not None else p)
    return m


def train_one_step(m, xs) -> tuple[list, list, list]:
    """Return (results, gradients of inputs and parameters, parameters after a step)."""
    ys = [y for y in collect_tensors(m(*xs)) if y.dtype.is_floating_point]
    rng = np.random.default_rng(3)
    weights = [flow.tensor(rng.choice([0.5, 1.0], tuple(y.shape)).astype("f4")) for y in ys]
    learned = [y for y in ys if y.requires_grad]
    if learned:
        flow.autograd.backward(learned, [w.to(y.dtype) for w, y in zip(weights, ys) if y.requires_grad])
    grads = [t.grad for t in (*xs, *m.parameters()) if t.dtype.is_floating_point]
    if any(True for _ in m.parameters()):
        flow.optim.SGD(m.parameters(), lr=0.125).step()
    return ys, grads, [*m.parameters()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "half"), every_pair(CASES))
def test_a_layer_in_16_bits_is_near_the_one_in_float32(case, half):
    text, *specs = case
    arrays = [np.asarray(array(s, i)) for i, s in enumerate(specs)]
    xs = [flow.tensor(a.astype("f4")).to(half) if a.dtype.kind == "f" else flow.tensor(a) for a in arrays]
    narrow = [x.clone().requires_grad_() if x.dtype is half else x for x in xs]
    wide = [x.float().requires_grad_() if x.dtype is half else x for x in xs]
    found, want = (train_one_step(build_layer(text, half).to(half), narrow),
                   train_one_step(build_layer(text, half), wide))
    for what, got, wanted in zip(("results", "gradients", "parameters"), found, want):
        for a, b in zip(got, wanted, strict=True):
            if b is None:
                assert a is None
                continue
            assert a.dtype is half or a.dtype is flow.float32 and what == "results", what
            b = b.detach().numpy()
            room = 24 * EPSILON[half] * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0))
            np.testing.assert_allclose(a.detach().float().numpy(), b, rtol=0, atol=room, err_msg=what)


def test_every_layer_has_a_case():
    named = {n for text, *_ in CASES for n in re.findall(r"nn\.(\w+)\(", text)}
    layers = {n for n, x in vars(nn).items() if isinstance(x, type) and issubclass(x, nn.Module)}
    layers = {n for n in layers if not n.startswith("Lazy")}  # they become those layers at their first input
    assert layers - RECORDS == named | REFUSED | HOLDERS


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_unsupported_layers_raise(half):
    with pytest.raises(FlowError) as e:
        nn.CTCLoss()(flow.zeros(5, 2, 3).to(half), flow.ones(2, 2).long(), flow.tensor([5, 5]),
                     flow.tensor([2, 2]))
    assert e.value.expected


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_running_statistics_stay_float32(half):
    """Batch sums are accumulated in float32, so a tenth of a small change is not lost."""
    m = nn.BatchNorm2d(2)
    m.weight.data, m.bias.data = m.weight.data.to(half), m.bias.data.to(half)
    for _ in range(20):
        m(flow.full((2, 2, 3, 3), 1.0).to(half))
    assert m.running_mean.dtype is flow.float32
    np.testing.assert_allclose(m.running_mean.numpy(), 1 - 0.9 ** 20, rtol=1e-3)
