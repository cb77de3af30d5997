"""Law: no stride, padding, dilation, or window leads to invalid memory access or a wrong result."""
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import FlowError
from flowedu.ops import REGISTRY

from .children import run_child

HUGE = [2**16, 2**16 + 1, 2**31 - 1, 2**31, 2**61, 2**62, 2**63 - 1, 2**64]
steps = st.one_of(st.integers(1, 7), st.sampled_from([2**20, *HUGE]))


def compare(name, inputs, **attrs):
    """Compare the kernel of an op with its NumPy reference, unless the op refuses the attributes."""
    op = REGISTRY[name]
    try:
        got = op(*map(flow.from_numpy, inputs), **attrs)
    except FlowError:
        return
    want = op.ask(op.ref, {**dict(zip(op.inputs, inputs)), **attrs})
    for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-5, atol=1e-5, err_msg=f"{name} {attrs}")


def draw_floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@given(data=st.data())
def test_convolutions_with_large_strides_and_dilations(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    groups, n = data.draw(st.sampled_from([1, 2])), data.draw(st.integers(1, 2))
    hw, kernel = ([data.draw(st.integers(1, 6)) for _ in "hw"] for _ in "xw")
    kernel = [min(k, 3) for k in kernel]
    attrs = dict(strides=tuple(data.draw(steps) for _ in "hw"), pads=tuple(data.draw(st.integers(0, 3))
                                                                           for _ in range(4)),
                 dilations=tuple(data.draw(st.integers(1, 3)) if k > 1 else data.draw(steps) for k in kernel))
    out = [(hw[i] + sum(attrs["pads"][2 * i:2 * i + 2]) - (kernel[i] - 1) * attrs["dilations"][i] - 1)
           // attrs["strides"][i] + 1 for i in (0, 1)]
    x, w, dy = (draw_floats(rng, n, 4, *hw), draw_floats(rng, 6, 4 // groups, *kernel),
                draw_floats(rng, n, 6, *[max(o, 1) for o in out]))
    attrs["groups"] = groups

    def last(a):
        return np.ascontiguousarray(a.transpose(0, 2, 3, 1))

    compare("conv2d", [x, w], **attrs)
    compare("conv2d_input_grad", [dy, w], hw=tuple(hw), **attrs)
    compare("conv2d_weight_grad", [dy, x], kernel=tuple(kernel), **attrs)
    compare("conv2d_last", [last(x), w], **attrs)
    compare("conv2d_last_input_grad", [last(dy), w], hw=tuple(hw), **attrs)
    compare("conv2d_last_weight_grad", [last(dy), last(x)], kernel=tuple(kernel), **attrs)


@given(data=st.data())
def test_pools_with_windows_inside_the_padding(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    hw = tuple(data.draw(st.integers(1, 6)) for _ in "hw")
    attrs = dict(ksize=tuple(data.draw(st.integers(1, 12)) for _ in "hw"),
                 strides=tuple(data.draw(steps) for _ in "hw"),
                 pads=tuple(data.draw(st.integers(0, 11)) for _ in range(4)))
    x = draw_floats(rng, 2, 2, *hw)
    compare("avg_pool2d", [x], **attrs)
    compare("max_pool2d", [x], **attrs)
    out = [(hw[i] + sum(attrs["pads"][2 * i:2 * i + 2]) - attrs["ksize"][i]) // attrs["strides"][i] + 1
           for i in (0, 1)]
    if min(out) > 0:
        compare("avg_pool2d_grad", [draw_floats(rng, 2, 2, *out)], hw=hw, **attrs)


def test_positions_in_the_padding_cost_no_time():
    """With 2**40 positions in the padding and 16 in the image, a loop over the padding would never end."""
    k = 2**19
    y = flow.nn.functional.avg_pool2d(flow.ones(1, 1, 4, 4), k, stride=k, padding=k // 2,
                                      count_include_pad=False)
    np.testing.assert_array_equal(y.numpy(), np.ones((1, 1, 1, 1)))


ATTACK = """
from children import limit_memory
import flowedu as flow, warnings
from flowedu.errors import FlowError
F, HUGE = flow.nn.functional, {huge}
warnings.simplefilter("ignore")
limit_memory()
def attempt(what, f):
    print(what, flush=True)
    try:
        f().sum().backward()
    except FlowError as e:
        assert e.problem and (e.got or e.fix), e
for rank in (1, 2, 3):
    conv, back = getattr(F, f"conv{{rank}}d"), getattr(F, f"conv_transpose{{rank}}d")
    largest, mean = getattr(F, f"max_pool{{rank}}d"), getattr(F, f"avg_pool{{rank}}d")
    x = flow.ones(1, 2, *[4] * rank, requires_grad=True)
    for a in HUGE:
        for stride, pad, dilation in ((a, 0, 1), (a, 1, 1), (1, a, 1), (1, a, a), (a, a, a), (1, 0, a),
                                      (a, 0, a)):
            for k, groups in ((1, 1), (3, 1), (3, 2)):
                w = flow.ones(2, 2 // groups, *[k] * rank, requires_grad=True)
                for f in (conv, back):
                    attempt((f.__name__, rank, k, groups, stride, pad, dilation), lambda: f(
                        x, w, stride=stride, padding=pad, dilation=dilation, groups=groups))
        attempt(("output_padding", rank, a),
                lambda: back(x, w, stride=a, padding=1, output_padding=a - 1, groups=2))
        for k, stride, pad in ((2, a, 0), (2, a, 1), (a, 1, a // 2), (a, a, a // 2), (a, 1, 0), (2, 1, a)):
            for ceil in (False, True):
                attempt(("max", rank, k, stride, pad, ceil),
                        lambda: largest(x, k, stride, pad, ceil_mode=ceil))
                attempt(("avg", rank, k, stride, pad, ceil), lambda: mean(x, k, stride, pad, ceil_mode=ceil))
            if rank == 2:
                attempt(("unfold", k, stride, pad), lambda: F.unfold(x, k, stride=stride, padding=pad))
                attempt(("unfold", k, stride, pad, a),
                        lambda: F.unfold(x, 2, stride=stride, padding=pad, dilation=a))
                c = flow.ones(1, 4, 4, requires_grad=True)
                attempt(("fold", k, stride, pad), lambda: F.fold(c, (3, 3), 2, stride=stride, padding=pad))
                attempt(("fold", k, stride, pad, a),
                        lambda: F.fold(c, (3, 3), 2, stride=stride, padding=pad, dilation=a))
    print("end", rank)
"""


def test_no_window_attribute_crashes_a_call():
    assert run_child(ATTACK.format(huge=HUGE), 200).endswith("end 3\n")


@pytest.mark.parametrize("n", HUGE)
@pytest.mark.parametrize("name", ["strides", "pads", "dilations", "groups"])
def test_window_attributes_in_a_graph_file_are_checked(tmp_path, name, n):
    """Attributes that are read from a file are checked like those of a call."""
    class Net(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.conv = flow.nn.Conv2d(1, 4, 3, padding=1)

        def build(self, x):
            return self.conv(x)

    x = flow.ones(2, 1, 4, 4)
    g = Net()
    g(x)
    flow.save(g, tmp_path / "net")
    path = tmp_path / "net" / "model.mlir"
    text = path.read_text(encoding="utf-8")
    old = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1], "groups": 1}[name]
    new = [n] * len(old) if isinstance(old, list) else n
    assert f'"{name}": {json.dumps(old)}' in text
    text = text.replace(f'"{name}": {json.dumps(old)}', f'"{name}": {json.dumps(new)}')
    for shape in ("2x4x4x4", "2x4x1x1"):
        path.write_text(text.replace("2x4x4x4", shape), encoding="utf-8")
        try:
            y = flow.load_graph(tmp_path / "net")(x)
        except FlowError:
            continue
        assert tuple(y.shape) == (2, 4, 1, 1) and np.isfinite(y.numpy()).all()
