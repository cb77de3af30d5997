"""16-bit floats outside of ops: default dtype, random streams, files, ONNX, DLPack, NumPy, Python kernels,
clipping.
"""
import copy
import pickle

import numpy as np
import pytest

import flowedu as flow
from custom_ops import own_registry  # noqa: F401
from flowedu import nn
from flowedu.errors import FlowError

HALVES = (flow.float16, flow.bfloat16)
BOTH = pytest.mark.parametrize("half", HALVES, ids=repr)


def draw_half(half, shape=(4, 5)):
    return flow.tensor(np.random.default_rng(0).normal(size=shape).astype("f4")).to(half)


def are_equal(a, b) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape and flow.equal(a.float(), b.float())


@pytest.fixture
def default(half):
    flow.set_default_dtype(half)
    yield half
    flow.set_default_dtype(flow.float32)


# ---- the default dtype
@BOTH
def test_untyped_values_have_the_default_dtype(half, default):
    for x in (flow.tensor([1.5]), flow.ones(2), flow.rand(2), flow.randn(2), flow.full((2,), 1.5),
              flow.arange(0.0, 3.0),
              flow.linspace(0, 1, 3), flow.eye(2), flow.tensor([1, 2]) / 2, flow.sqrt(flow.tensor([4])),
              flow.Tensor(2, 3)):
        assert x.dtype is half
    for m, x in ((nn.Linear(3, 2), flow.ones(4, 3)), (nn.Conv2d(1, 2, 3), flow.ones(1, 1, 4, 4)),
                 (nn.LayerNorm(3), flow.ones(2, 3)), (nn.LSTM(3, 2), flow.ones(2, 1, 3)),
                 (nn.PReLU(), flow.ones(2)), (nn.BatchNorm1d(3), flow.rand(4, 3)),
                 (nn.Embedding(3, 2), flow.tensor([0, 2])), (nn.MultiheadAttention(4, 2), None)):
        assert {p.dtype for p in m.parameters()} == {half}
        y = m(x) if x is not None else m(*[flow.ones(2, 1, 4)] * 3)
        y = y[0] if isinstance(y, tuple) else y
        y.float().sum().backward()
        assert y.dtype is half and all(p.grad is None or p.grad.dtype is half for p in m.parameters())
    assert nn.Linear(3, 2, dtype=flow.float32).weight.dtype is flow.float32


# ---- random numbers
FILLS = {
    "normal_": lambda x: x.normal_(1.0, 2.0), "uniform_": lambda x: x.uniform_(-1, 1),
    "exponential_": lambda x: x.exponential_(2.0), "random_": lambda x: x.random_(3, 100),
    "bernoulli_": lambda x: x.bernoulli_(0.4), "trunc_normal_": lambda x: x.trunc_normal_(),
    **{f"{n}_": getattr(nn.init, f"{n}_") for n in ("kaiming_normal", "kaiming_uniform", "xavier_normal",
                                                    "xavier_uniform", "orthogonal")},
}


@BOTH
@pytest.mark.parametrize("name", FILLS)
def test_a_stream_is_the_rounded_float32_stream(name, half):
    x, y, after = flow.zeros(6, 5, dtype=half), flow.zeros(6, 5), []
    for t in (x, y):
        flow.manual_seed(7)
        FILLS[name](t)
        after.append(flow.rand(3))
    assert are_equal(x, y.to(half)) and flow.equal(*after), "and as much is drawn"


@BOTH
def test_random_tensors_are_rounded_float32_tensors(half):
    for f in (flow.randn, flow.rand, lambda *s, dtype: flow.normal(0.0, 2.0, s, dtype=dtype),
              lambda *s, dtype: flow.randint(0, 200, s, dtype=dtype),
              lambda *s, dtype: flow.rand_like(flow.ones(*s, dtype=dtype)),
              lambda *s, dtype: flow.randn_like(flow.ones(*s, dtype=dtype)),
              lambda *s, dtype: nn.functional.dropout(flow.ones(*s, dtype=dtype), 0.25)):
        found = []
        for kind in (half, flow.float32):
            flow.manual_seed(3)
            found.append(f(50, 3, dtype=kind))
        assert are_equal(found[0], found[1].to(half))


# ---- files
@BOTH
def test_files_and_copies_keep_every_bit(half, tmp_path):
    x = draw_half(half)
    x[0, 0], x[0, 1], x[1, 1] = float("inf"), flow.tensor(-0.0).to(half), float("-inf")
    flow.save({"x": x, "more": [x[:0], x[0, 2]]}, tmp_path / "all")
    again = flow.load(tmp_path / "all")
    for a, b in ((again["x"], x), (again["more"][0], x[:0]), (again["more"][1], x[0, 2]),
                 (pickle.loads(pickle.dumps(x)), x), (copy.deepcopy(x), x)):
        assert are_equal(a, b)
    assert np.signbit(again["x"][0, 1].item())


@BOTH
def test_a_safetensors_file_keeps_dtypes(half, tmp_path):
    x = draw_half(half, (3, 4))
    bits = x.numpy() if half is flow.float16 else (x.float().numpy().view("u4") >> 16).astype("<u2")
    head = b'{"w":{"dtype":"%s","shape":[3,4],"data_offsets":[0,24]},' % (b"F16" if half is flow.float16
                                                                          else b"BF16")
    head += b'"n":{"dtype":"I64","shape":[2],"data_offsets":[24,40]}}'
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + bits.tobytes() + np.array([3, 4]).tobytes())
    pytest.importorskip("safetensors")
    found = flow.load(str(path))
    assert are_equal(found["w"], x) and found["n"].tolist() == [3, 4]


class HalfGraph(nn.Graph):
    def __init__(self, half):
        super().__init__()
        flow.manual_seed(0)
        self.m = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 2)).to(half)

    def build(self, x):
        return self.m(x) * 2.0


@BOTH
def test_a_saved_graph_gives_the_same_bits(half, tmp_path):
    g, x = HalfGraph(half), draw_half(half, (3, 4))
    y = g(x)
    flow.save(g, tmp_path / "graph")
    assert are_equal(flow.load_graph(tmp_path / "graph")(x), y)


@BOTH
def test_onnx_export_keeps_16_bit_dtypes_and_values(half, tmp_path):
    """The file has the dtypes and values. onnxruntime runs float16; its CPU provider computes nothing in
    bfloat16.
    """
    onnx = pytest.importorskip("onnx")
    g, x = HalfGraph(half), draw_half(half, (3, 4))
    y = g(x)
    flow.onnx.export(g, str(tmp_path / "m.onnx"))
    model = onnx.load(str(tmp_path / "m.onnx"))
    onnx.checker.check_model(model, full_check=True)
    kind = onnx.TensorProto.FLOAT16 if half is flow.float16 else onnx.TensorProto.BFLOAT16
    assert {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)} == {kind}
    stored = {t.name: t for t in model.graph.initializer}
    weight = stored["m.0.weight"]
    assert weight.data_type == kind
    numbers = np.frombuffer(weight.raw_data, "<f2") if half is flow.float16 else (
        np.frombuffer(weight.raw_data, "<u2").astype("u4") << 16).view("f4")
    np.testing.assert_array_equal(numbers.reshape(5, 4).astype("f4"), g.m[0].weight.detach().float().numpy())
    if half is flow.float16:
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
        got = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
        np.testing.assert_allclose(got.astype("f4"), y.float().numpy(), rtol=2e-2, atol=2e-2)


# ---- other libraries
@BOTH
def test_dlpack_shares_the_memory(half):
    x = draw_half(half)
    y = flow.from_dlpack(x)
    assert are_equal(x, y)
    y[0, 0] = 3.0
    assert x[0, 0].item() == 3.0


@BOTH
@pytest.mark.torch
def test_pytorch_shares_the_memory(half):
    torch = pytest.importorskip("torch")
    x = draw_half(half)
    t = torch.from_dlpack(x)
    assert str(t.dtype) == f"torch.{half.name}" and t.tolist() == x.tolist()
    t[1, 1] = 2.0
    assert x[1, 1].item() == 2.0 and are_equal(flow.from_dlpack(t), x)


def test_numpy_bfloat16_from_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for x in (draw_half(flow.bfloat16), draw_half(flow.bfloat16).t()[1:, ::2], draw_half(flow.bfloat16)[:0],
              flow.tensor(1.5).bfloat16()):
        a = x.numpy()
        assert a.dtype == ml_dtypes.bfloat16 and a.shape == tuple(x.shape)
        np.testing.assert_array_equal(a.astype("f4"), x.float().numpy())
        assert are_equal(flow.tensor(a), x)
        assert flow.tensor(a, dtype=flow.float32).dtype is flow.float32
        if a.size:
            a[...] = 2
            assert x.float().min().item() == x.float().max().item() == 2.0, "the same memory"
    # the tensor is freed, but not its memory
    a = draw_half(flow.bfloat16).numpy()
    np.testing.assert_array_equal(a.astype("f4"), draw_half(flow.bfloat16).float().numpy())


def test_bfloat16_to_numpy_without_ml_dtypes_raises(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(FlowError, match="NumPy has no bfloat16") as e:
        draw_half(flow.bfloat16).numpy()
    assert "x.float().numpy()" in e.value.fix and "ml_dtypes" in e.value.fix


@BOTH
def test_a_python_function_gets_float16_unchanged_and_bfloat16_as_float32(half):
    seen = []

    @flow.custom_op(f"plus_{half.name}", replace=True)
    def plus(a, b):
        seen.append(a.dtype)
        return a + b

    x, y = draw_half(half, (3, 5)), draw_half(half, (5, 3)).t()
    got = plus(x, y)
    assert seen[-1] == (np.float16 if half is flow.float16 else np.float32)
    assert are_equal(got, x + y)
    special = flow.tensor([float("nan"), float("inf"), -0.0, 3.3895e38, 1 + 2.0 ** -8]).to(half)
    np.testing.assert_array_equal(plus(special, special).float().numpy(), (special + special).float().numpy())


# ---- clipping
@BOTH
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("kind", [2.0, 1.0, float("inf")])
def test_a_norm_is_computed_in_float32(half, size, kind):
    """float16 cannot hold squares above 65504 or below 6e-8."""
    grads = [draw_half(half, (5, 7)) * size, draw_half(half, (9,)) * size]
    ps = [nn.Parameter(flow.zeros_like(g)) for g in grads]
    for p, g in zip(ps, grads):
        p.grad = g.clone()
    want = np.concatenate([g.double().numpy().ravel() for g in grads])
    norm = np.linalg.norm(want, kind)
    got = nn.utils.clip_grad_norm_(ps, norm / 2, kind)
    np.testing.assert_allclose(got.item(), norm, rtol=1e-2 if half is flow.bfloat16 else 2e-3)
    for p, g in zip(ps, grads):
        assert p.grad.dtype is half
        np.testing.assert_allclose(p.grad.float().numpy(), g.float().numpy() / 2, rtol=2e-2, atol=1e-7)
