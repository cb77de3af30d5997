"""Multi-head attention and Transformer layers against formulas in NumPy."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.errors import ShapeError
from flowedu.nn import functional as F

from .formulas.attention import _norm, attention, transformer_layer
from .formulas.table import Draw, fill_parameters

few = settings(max_examples=max(10, settings().max_examples // 2))


def assert_close_to_formula(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-8, atol=1e-10)


def swap_first_axes(x, first):
    return x.swapaxes(0, 1) if first and x.ndim == 3 else x


def added(mask):
    """Convert a mask to numbers: -inf where it is True."""
    return np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask


def forbidden(d, *shape):
    """Draw a mask: bool (True is masked), with the first position always open, or float."""
    mask = d.rng.random(shape) < 0.4
    mask[..., 0] = False
    return d.one_of(mask, d.floats(*shape))


def masks_of(d, batch, heads, steps, places):
    """Draw (keywords of the call, the same masks as numbers for scores of shape (batch, heads, L, S))."""
    given_, shown = {}, []
    kind = d.one_of(None, "one", "per head")
    if kind:
        m = forbidden(d, *((batch * heads,) if kind == "per head" else ()), steps, places)
        given_["attn_mask"] = flow.tensor(m)
        shown.append(added(m).reshape(batch, heads, steps, places) if kind == "per head" else added(m))
    if d.one_of(True, False):
        m = forbidden(d, batch, places)
        given_["key_padding_mask"] = flow.tensor(m)
        shown.append(added(m)[:, None, None])
    return given_, shown


@few
@given(data=st.data())
def test_multihead_attention(data):
    d = Draw(data)
    heads = d.one_of(1, 2, 3)
    first = d.one_of(True, False)
    batch = d.one_of(1, 2)
    steps = d.one_of(1, 3)
    size, itself = heads * d.one_of(1, 2), d.one_of(True, False)
    places = steps if itself else d.one_of(1, 4)
    sizes = {} if itself else d.options(kdim=(5,), vdim=(4,))
    options = d.options(bias=(False,), add_bias_kv=(True,), add_zero_attn=(True,))
    m, own = fill_parameters(nn.MultiheadAttention(size, heads, batch_first=first, **sizes, **options), d)
    query = d.floats(steps, batch, size)
    key, value = ((query, query) if itself else (d.floats(places, batch, sizes.get(n, size))
                                                 for n in ("kdim", "vdim")))
    calls, masks = masks_of(d, batch, heads, steps, places)
    want, weights = attention(own, "", query, key, value, heads, masks, options.get("add_bias_kv"),
                              options.get("add_zero_attn"))
    average, shown = d.one_of(True, False), d.one_of(True, False)
    q = flow.tensor(swap_first_axes(query, first))
    rest = (q, q) if itself else tuple(flow.tensor(swap_first_axes(x, first)) for x in (key, value))
    y, w = m(q, *rest, **calls, average_attn_weights=average, need_weights=shown)
    assert_close_to_formula(y, swap_first_axes(want, first))
    assert (w is not None) == shown
    if shown:
        assert_close_to_formula(w, weights.mean(1) if average else weights)
    if batch == 1 and not calls:                         # without a batch axis
        y, w = m(*(flow.tensor(x[:, 0]) for x in (query, key, value)))
        assert_close_to_formula(y, want[:, 0])
        assert_close_to_formula(w, weights[0].mean(0))


@few
@given(data=st.data())
def test_gradient_of_multihead_attention(data):
    d = Draw(data, smooth=True)
    m, own = fill_parameters(nn.MultiheadAttention(4, 2, add_bias_kv=True), d)
    x = {n: d.floats(3, 2, 4) for n in ("query", "key", "value")}
    ts = {n: flow.tensor(a, requires_grad=True) for n, a in x.items()}
    w = d.rng.standard_normal((3, 2, 4))
    (m(**ts)[0] * flow.tensor(w)).sum().backward()
    grads = {k: p.grad.numpy() for k, p in m.named_parameters()} | {k: t.grad.numpy() for k, t in ts.items()}
    everything = own | x
    direction = {k: d.rng.standard_normal(a.shape) for k, a in everything.items()}

    def value(h):
        moved = {k: a + h * direction[k] for k, a in everything.items()}
        return (attention(moved, "", moved["query"], moved["key"], moved["value"], 2,
                          bias_kv=True)[0] * w).sum()

    got = sum((grads[k] * v).sum() for k, v in direction.items())
    want = (value(1e-5) - value(-1e-5)) / 2e-5
    assert abs(got - want) <= 1e-5 * max(1, abs(want))


def layer_options(d):
    activation = d.one_of("relu", "gelu", "function")
    options = {"dim_feedforward": d.one_of(1, 5), "dropout": d.one_of(0.0, 0.5),
               "norm_first": d.one_of(True, False),
               "bias": d.one_of(True, False), "layer_norm_eps": d.one_of(1e-5, 0.1),
               "batch_first": d.one_of(True, False),
               "activation": F.tanh if activation == "function" else activation}
    return options, {"activation": np.tanh if activation == "function" else activation,
                     "norm_first": options["norm_first"], "eps": options["layer_norm_eps"]}


@few
@given(data=st.data())
def test_encoder(data):
    d = Draw(data)
    heads, steps, batch = d.one_of(1, 2), d.one_of(1, 3), 2
    options, formula = layer_options(d)
    m, own = fill_parameters(nn.TransformerEncoderLayer(4, heads, **options).eval(), d)
    x = d.floats(steps, batch, 4) + d.rng.standard_normal((steps, batch, 4)) * 0.1  # norms need some variance
    calls, masks = masks_of(d, batch, heads, steps, steps)
    names = {"attn_mask": "src_mask", "key_padding_mask": "src_key_padding_mask"}
    calls = {names[k]: v for k, v in calls.items()}
    want = transformer_layer(own, x, heads=heads, masks=masks, **formula)
    assert_close_to_formula(m(flow.tensor(swap_first_axes(x, options["batch_first"])), **calls),
                            swap_first_axes(want, options["batch_first"]))
    stack, own = fill_parameters(nn.TransformerEncoder(m, 2, d.one_of(None, nn.LayerNorm(4))).eval(), d)
    want = x
    for i in range(2):
        want = transformer_layer(part(own, f"layers.{i}."), want, heads=heads, masks=masks, **formula)
    want = _norm(own, "norm", want, 1e-5) if stack.norm is not None else want
    calls = {k.replace("src_mask", "mask"): v for k, v in calls.items()}
    assert_close_to_formula(stack(flow.tensor(swap_first_axes(x, options["batch_first"])), **calls),
                            swap_first_axes(want, options["batch_first"]))


def part(own, prefix):
    return {k.removeprefix(prefix): v for k, v in own.items() if k.startswith(prefix)}


@few
@given(data=st.data())
def test_decoder(data):
    d = Draw(data)
    heads = d.one_of(1, 2)
    steps = d.one_of(1, 3)
    places = d.one_of(1, 4)
    batch = 2
    options, formula = layer_options(d)
    m, own = fill_parameters(nn.TransformerDecoderLayer(4, heads, **options).eval(), d)
    x, memory = (d.floats(n, batch, 4) + d.rng.standard_normal((n, batch, 4)) * 0.1 for n in (steps, places))
    calls, masks = masks_of(d, batch, heads, steps, steps)
    others, memory_masks = masks_of(d, batch, heads, steps, places)
    names = {"attn_mask": "mask", "key_padding_mask": "key_padding_mask"}
    calls = {f"tgt_{names[k]}": v for k, v in calls.items()} | {f"memory_{names[k]}": v
                                                                for k, v in others.items()}
    formula |= {"heads": heads, "masks": masks, "memory_masks": memory_masks}
    first = options["batch_first"]
    inputs = flow.tensor(swap_first_axes(x, first)), flow.tensor(swap_first_axes(memory, first))
    assert_close_to_formula(m(*inputs, **calls),
                            swap_first_axes(transformer_layer(own, x, memory, **formula), first))
    stack, own = fill_parameters(nn.TransformerDecoder(m, 2, d.one_of(None, nn.LayerNorm(4))).eval(), d)
    want = x
    for i in range(2):
        want = transformer_layer(part(own, f"layers.{i}."), want, memory, **formula)
    want = _norm(own, "norm", want, 1e-5) if stack.norm is not None else want
    assert_close_to_formula(stack(*inputs, **calls), swap_first_axes(want, first))


@few
@given(data=st.data())
def test_transformer(data):
    """Compose it from the modules tested above: the encoder of src, then the decoder of both."""
    d = Draw(data)
    heads = d.one_of(1, 2)
    places = d.one_of(1, 3)
    steps = d.one_of(1, 4)
    batch = 2
    first = d.one_of(False, True)
    options = {"batch_first": first, "norm_first": d.one_of(False, True), "bias": d.one_of(False, True)}
    m, own = fill_parameters(nn.Transformer(4, heads, 2, 1, 6, 0.1, d.one_of("relu", "gelu"),
                                            **options).eval(), d)
    assert (len(m.encoder.layers) == 2 and len(m.decoder.layers) == 1
            and ("encoder.norm.bias" in own) == options["bias"])
    src, tgt = (d.floats(n, batch, 4) + d.rng.standard_normal((n, batch, 4)) * 0.1 for n in (places, steps))
    src_calls, _ = masks_of(d, batch, heads, places, places)
    tgt_calls, _ = masks_of(d, batch, heads, steps, steps)
    memory_calls, _ = masks_of(d, batch, heads, steps, places)
    names = {"attn_mask": "mask", "key_padding_mask": "key_padding_mask"}
    calls = {f"{who}_{names[k]}": v for who, these in (("src", src_calls), ("tgt", tgt_calls),
                                                       ("memory", memory_calls))
             for k, v in these.items()}
    inputs = [flow.tensor(swap_first_axes(x, first)) for x in (src, tgt)]
    memory = m.encoder(inputs[0], calls.get("src_mask"), calls.get("src_key_padding_mask"))
    want = m.decoder(inputs[1], memory, **{k: v for k, v in calls.items() if not k.startswith("src")})
    np.testing.assert_array_equal(m(*inputs, **calls).detach().numpy(), want.detach().numpy())
    only = nn.Transformer(4, custom_encoder=nn.Identity(), custom_decoder=m.decoder)
    assert only.decoder is m.decoder and isinstance(only.encoder, nn.Identity)


def test_dropout_acts_in_training_mode():
    flow.manual_seed(0)
    for m, n in ((nn.TransformerEncoderLayer(8, 2, 16), 1), (nn.TransformerDecoderLayer(8, 2, 16), 2)):
        xs = [flow.randn(5, 2, 8) for _ in range(n)]
        assert not np.array_equal(m(*xs).detach().numpy(), m(*xs).detach().numpy())
        m.eval()
        np.testing.assert_array_equal(m(*xs).detach().numpy(), m(*xs).detach().numpy())


def test_subsequent_mask():
    from flowedu.nn.modules.attention import generate_square_subsequent_mask
    want = np.where(np.arange(4) > np.arange(4)[:, None], -np.inf, 0)
    np.testing.assert_array_equal(generate_square_subsequent_mask(4).numpy(), want)


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="divisible by num_heads"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(RuntimeError, match="relu/gelu, not tanh"):
        nn.TransformerEncoderLayer(4, 2, activation="tanh")
    m = nn.Transformer(4, 2, 1, 1, 8)
    for src, tgt, words in (((3, 2, 4), (3, 1, 4), "other batches"), ((3, 2, 4), (2, 4), "other batches"),
                            ((3, 2, 5), (3, 2, 4), "not d_model"), ((3, 2, 4), (3, 2, 8), "not d_model")):
        with pytest.raises(ShapeError, match=words):
            m(flow.zeros(*src), flow.zeros(*tgt))
    with pytest.raises(RuntimeError, match="expecting embedding dimension of 4"):
        nn.MultiheadAttention(4, 2)(*[flow.ones(3, 2, 6)] * 3)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_heads_of_key_and_value_divide_those_of_query(query, key, value):
    q, k, v = (flow.ones(2, heads, 3, 4) for heads in (query, key, value))
    if key and value and query % key == query % value == 0:
        assert F.scaled_dot_product_attention(q, k, v, enable_gqa=True).shape == (2, query, 3, 4)
    else:
        with pytest.raises(ShapeError, match="must divide"):
            F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
