"""Window functions: pooling, unpooling, convolutions, unfold, and fold."""
import itertools
import math

import numpy as np

from .table import row


def each(value, n):
    """Return one number for every axis."""
    value = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return value * n if len(value) == 1 else value


def taps(size, kernel, stride, padding, dilation, ceil_mode=False):
    """Return the element positions of each window along one axis; those below 0 and from `size` on are
    padding.
    """
    spare = size + 2 * padding - (kernel - 1) * dilation - 1
    count = (math.ceil(spare / stride) if ceil_mode else spare // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:       # a window begins inside
        count -= 1
    return [[i * stride - padding + k * dilation for k in range(kernel)] for i in range(count)]


def windows(size, kernel, stride, padding, dilation, ceil_mode=False):
    """Return (shape of the results, for each result the positions along every axis)."""
    axes = [taps(*a, ceil_mode) for a in zip(size, kernel, stride, padding, dilation)]
    return tuple(map(len, axes)), itertools.product(*axes)


def _planes(d, n, least=1, channels=(1, 2)):
    lead = (d.one_of(*channels),) if d.one_of(True, False, False) else (d.one_of(1, 2), d.one_of(*channels))
    return d.floats(*lead, *(d.whole(least, max(least, 6 if n == 1 else 4)) for _ in range(n)))


# ---- pooling
def max_pool(n):
    def formula(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                return_indices=False):
        size, kernel = input.shape[-n:], each(kernel_size, n)
        step = kernel if stride is None else each(stride, n)
        out, found = windows(size, kernel, step, each(padding, n), each(dilation, n), ceil_mode)
        planes = input.reshape(-1, *size)
        best, places = [], []
        for window in found:
            inside = [p for p in itertools.product(*window) if all(0 <= i < s for i, s in zip(p, size))]
            flat = np.array([np.ravel_multi_index(p, size) for p in inside])
            values = planes.reshape(len(planes), -1)[:, flat]
            best.append(values.max(1))
            places.append(flat[values.argmax(1)])                  # the first of equal elements
        y, index = (np.stack(a, 1).reshape(*input.shape[:-n], *out) for a in (best, places))
        return (y, index) if return_indices else y

    return formula


def avg_pool(n):
    def formula(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                divisor_override=None):
        size, kernel, pad = input.shape[-n:], each(kernel_size, n), each(padding, n)
        step = kernel if stride is None else each(stride, n)
        out, found = windows(size, kernel, step, pad, (1,) * n, ceil_mode)
        means = []
        for window in found:
            inside = [[i for i in axis if 0 <= i < s] for axis, s in zip(window, size)]
            padded = [[i for i in axis if i < s + p] for axis, s, p in zip(window, size, pad)]
            count = divisor_override or math.prod(map(len, padded if count_include_pad else inside))
            part = input[(..., *np.ix_(*inside))]
            means.append(part.sum(tuple(range(-n, 0))) / count)
        return np.stack(means, -1).reshape(*input.shape[:-n], *out)

    return formula


def _pooled(d, n, dilations=(1,)):
    kernel = [d.one_of(1, 2, 3) for _ in range(n)] if n < 3 else [2, d.one_of(1, 2), 2]
    dilation = [d.one_of(*dilations) for _ in range(n)]
    padding = [d.one_of(*range((k - 1) * s // 2 + 1)) if k > 1 else 0 for k, s in zip(kernel, dilation)]
    padding = [min(p, k // 2) for p, k in zip(padding, kernel)]
    extent = max((k - 1) * s + 1 for k, s in zip(kernel, dilation))
    x = _planes(d, n, extent)
    args = {"input": x, "kernel_size": tuple(kernel), "padding": tuple(padding)} | d.options(
        stride=(1, 2, 3), ceil_mode=(True,))
    if len(set(kernel)) == 1 and d.one_of(True, False):
        args["kernel_size"] = kernel[0]
    return args | ({"dilation": tuple(dilation)} if len(dilations) > 1 else {})


def _spans(size, out):
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _fill_output_size(input, output_size, n):
    size = input.shape[-n:]
    return size, [s if o is None else o for o, s in zip(each(output_size, n), size)]


def adaptive_avg_pool(n):
    def formula(input, output_size):
        size, out = _fill_output_size(input, output_size, n)
        y = [input[(..., *(slice(*s) for s in spans))].mean(tuple(range(-n, 0)))
             for spans in itertools.product(*map(_spans, size, out))]
        return np.stack(y, -1).reshape(*input.shape[:-n], *out)

    return formula


def adaptive_max_pool(n):
    def formula(input, output_size, return_indices=False):
        size, out = _fill_output_size(input, output_size, n)
        flat = np.arange(math.prod(size)).reshape(size)
        best, places = [], []
        for spans in itertools.product(*map(_spans, size, out)):
            cut = tuple(slice(*s) for s in spans)
            part = input[(..., *cut)].reshape(*input.shape[:-n], -1)
            best.append(part.max(-1))
            places.append(flat[cut].ravel()[part.argmax(-1)])
        y, index = (np.stack(a, -1).reshape(*input.shape[:-n], *out) for a in (best, places))
        return (y, index) if return_indices else y

    return formula


def _adaptive(d, n):
    x = _planes(d, n)
    sizes = [d.one_of(1, 2, 3, None) for _ in range(n)]
    return {"input": x, "output_size": d.one_of(tuple(sizes), sizes[0] or 4)}


def max_unpool(n):
    def formula(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel = each(kernel_size, n)
        step = kernel if stride is None else each(stride, n)
        size = tuple((s - 1) * t - 2 * p + k for s, t, p, k in zip(input.shape[-n:], step, each(padding, n),
                                                                   kernel))
        size = size if output_size is None else tuple(output_size[-n:])
        y = np.zeros((*input.shape[:-n], math.prod(size)))
        rows = input.reshape(*input.shape[:-n], -1)
        np.put_along_axis(y, indices.reshape(rows.shape), rows, -1)
        return y.reshape(*input.shape[:-n], *size)

    return formula


def _unpooled(d, n):
    kernel, size = d.one_of(2, 3), d.one_of(3, 4, 5)
    lead = d.one_of((2,), (1, 2))
    y, index = max_pool(n)(d.rng.standard_normal((*lead, *(size,) * n)), kernel, return_indices=True)
    return {"input": y, "indices": index, "kernel_size": kernel, "output_size": (size,) * n}


# ---- convolutions
def conv(n):
    def formula(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        single = input.ndim == n + 1
        x = input[None] if single else input
        kernel = weight.shape[2:]
        step = each(stride, n)
        wide = each(dilation, n)
        if padding == "same":                                      # odd padding goes after
            need = [(k - 1) * s for k, s in zip(kernel, wide)]
            pads = [(m // 2, m - m // 2) for m in need]
        else:
            pads = [(p, p) for p in each(0 if padding == "valid" else padding, n)]
        x = np.pad(x, [(0, 0), (0, 0), *pads])
        out = [(s - (k - 1) * w - 1) // t + 1 for s, k, w, t in zip(x.shape[2:], kernel, wide, step)]
        x = x.reshape(len(x), groups, -1, *x.shape[2:])
        w = weight.reshape(groups, -1, *weight.shape[1:])
        y = 0
        for tap in itertools.product(*map(range, kernel)):
            cut = tuple(slice(i * a, i * a + (o - 1) * t + 1, t) for i, a, o, t in zip(tap, wide, out, step))
            y = y + np.einsum("bgc...,goc->bgo...", x[(..., *cut)], w[(..., *tap)])
        y = y.reshape(len(y), -1, *out)
        y = y if bias is None else y + bias.reshape(-1, *(1,) * n)
        return y[0] if single else y

    return formula


def conv_transpose(n):
    def formula(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        """Let every element add its window of weights to the result."""
        single = input.ndim == n + 1
        x = input[None] if single else input
        kernel = weight.shape[2:]
        step = each(stride, n)
        wide = each(dilation, n)
        sizes = list(zip(x.shape[2:], kernel, step, wide, each(padding, n), each(output_padding, n)))
        out = [(s - 1) * t - 2 * p + w * (k - 1) + e + 1 for s, k, t, w, p, e in sizes]
        x = x.reshape(len(x), groups, -1, *x.shape[2:])
        w = weight.reshape(groups, -1, *weight.shape[1:])
        y = np.zeros((len(x), groups, weight.shape[1], *(o + 2 * p for o, (*_, p, _) in zip(out, sizes))))
        for tap in itertools.product(*map(range, kernel)):
            cut = tuple(slice(i * a, i * a + (s - 1) * t + 1, t) for i, (s, _, t, a, _, _) in zip(tap, sizes))
            y[(..., *cut)] += np.einsum("bgc...,gco->bgo...", x, w[(..., *tap)])
        y = y[(..., *(slice(p, p + o) for o, (*_, p, _) in zip(out, sizes)))].reshape(len(y), -1, *out)
        y = y if bias is None else y + bias.reshape(-1, *(1,) * n)
        return y[0] if single else y

    return formula


def _kernel(d, n):
    return tuple(d.one_of(1, 2, 3) for _ in range(n)) if n < 3 else (d.one_of(1, 2), 2, 1)


def _convolved(d, n):
    groups, kernel, dilation = d.one_of(1, 1, 2, 3), _kernel(d, n), tuple(d.one_of(1, 1, 2) for _ in range(n))
    extent = max((k - 1) * s + 1 for k, s in zip(kernel, dilation))
    x = _planes(d, n, extent, (groups, 2 * groups))
    padding = d.one_of(0, tuple(d.one_of(0, 1, 2) for _ in range(n)), "same", "valid")
    weight = d.floats(groups * d.one_of(1, 2), x.shape[-n - 1] // groups, *kernel)
    args = {"input": x, "weight": weight, "padding": padding, "dilation": dilation, "groups": groups}
    args |= d.maybe(bias=lambda: d.floats(len(weight)))
    return (args if padding == "same" else args | d.options(stride=(2, tuple(d.one_of(1, 2, 3)
                                                                             for _ in range(n)))))


def _transposed(d, n):
    groups, kernel = d.one_of(1, 2), _kernel(d, n)
    stride, dilation = (tuple(d.one_of(1, 2, 3) for _ in range(n)) for _ in range(2))
    x = _planes(d, n, 2 if n < 3 else 1, (groups, 2 * groups))
    padding = tuple(d.one_of(0, 1) if (s - 1) * t + (k - 1) * w >= 2 else 0
                    for s, k, t, w in zip(x.shape[-n:], kernel, stride, dilation))
    extra = tuple(d.one_of(*range(max(t, w))) for t, w in zip(stride, dilation))
    weight = d.floats(x.shape[-n - 1], d.one_of(1, 2), *kernel)
    return {"input": x, "weight": weight, "stride": stride, "padding": padding, "output_padding": extra,
            "groups": groups, "dilation": dilation} | d.maybe(bias=lambda: d.floats(weight.shape[1] * groups))


def _layer(transposed):
    def build(a):
        first, second = a["weight"].shape[:2]
        inside, outside = (first, second * a["groups"]) if transposed else (second * a["groups"], first)
        return {"in_channels": inside, "out_channels": outside, "kernel_size": a["weight"].shape[2:],
                "bias": "bias" in a}

    return build


for _n in (1, 2, 3):
    row(lambda d, n=_n: _pooled(d, n, (1, 1, 2)) | d.options(return_indices=(True,)), f"max_pool{_n}d",
        f"MaxPool{_n}d")(max_pool(_n))
    row(lambda d, n=_n: _pooled(d, n) | d.options(count_include_pad=(False,), divisor_override=(3,) if n > 1
                                                  else (None,)),
        f"avg_pool{_n}d")(avg_pool(_n))
    row(lambda d, n=_n: _pooled(d, n) | d.options(count_include_pad=(False,
                                                                     )) | (d.options(divisor_override=(3,))
                                                                           if n > 1
                                                                           else {}),
        None, f"AvgPool{_n}d")(avg_pool(_n))
    row(lambda d, n=_n: _adaptive(d, n), f"adaptive_avg_pool{_n}d",
        f"AdaptiveAvgPool{_n}d")(adaptive_avg_pool(_n))
    row(lambda d, n=_n: _adaptive(d, n) | d.options(return_indices=(True,)), f"adaptive_max_pool{_n}d",
        f"AdaptiveMaxPool{_n}d")(adaptive_max_pool(_n))
    row(lambda d, n=_n: _unpooled(d, n), f"max_unpool{_n}d", f"MaxUnpool{_n}d")(max_unpool(_n))
    row(lambda d, n=_n: _convolved(d, n), f"conv{_n}d", f"Conv{_n}d", _layer(False),
        other_defaults=("bias",))(conv(_n))
    row(lambda d, n=_n: _transposed(d, n), f"conv_transpose{_n}d", f"ConvTranspose{_n}d", _layer(True),
        other_defaults=("bias",))(conv_transpose(_n))


# ---- windows as columns
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    pad = each(padding, 2)
    x = np.pad(input, [(0, 0)] * (input.ndim - 2) + [(p, p) for p in pad])
    _, found = windows(x.shape[-2:], each(kernel_size, 2), each(stride, 2), (0, 0), each(dilation, 2))
    lead = (*input.shape[:-3], -1)
    return np.stack([x[(..., *np.ix_(*w))].reshape(lead) for w in found], -1)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    (h, w), kernel, pad = each(output_size, 2), each(kernel_size, 2), each(padding, 2)
    y = np.zeros((*input.shape[:-2], input.shape[-2] // math.prod(kernel), h + 2 * pad[0], w + 2 * pad[1]))
    _, found = windows(y.shape[-2:], kernel, each(stride, 2), (0, 0), each(dilation, 2))
    for i, window in enumerate(found):
        y[(..., *np.ix_(*window))] += input[..., i].reshape(*y.shape[:-2], *kernel)
    return y[..., pad[0]:pad[0] + h, pad[1]:pad[1] + w]


def _columns(d):
    kernel, dilation = (tuple(d.one_of(1, 2) for _ in range(2)) for _ in range(2))
    return {"input": _planes(d, 2, 3), "kernel_size": d.one_of(kernel, kernel[0])} | d.options(
        dilation=(dilation, 2), padding=(1, (0, 2)), stride=(2, (1, 2)))


def _summed(d):
    args = _columns(d)
    columns = unfold(**args)
    return args | {"input": d.floats(*columns.shape), "output_size": args["input"].shape[-2:]}


row(_columns, module="Unfold")(unfold)
row(_summed, module="Fold")(fold)
