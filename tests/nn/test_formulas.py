"""Layers, losses, and functions against NumPy formulas (folder formulas): values, gradients, defaults. Every
public one has a formula or a separate law.
"""
import inspect

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.diagnostics.function import PublicFunction

from .formulas import TABLE
from .formulas.table import (
    Draw,
    arrays_to_tensors,
    call_function,
    call_module,
    flatten_results,
    parameters_of,
)

quick = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate))     # a seed has nothing to shrink
few = settings(quick, max_examples=max(10, settings().max_examples // 2))
ROWS = [pytest.param(row, id=row.name) for row in TABLE]
OF_FUNCTIONS = [pytest.param(row, id=row.name) for row in TABLE if row.function]


def compare(got, want, dtype, what):
    """Assert equality up to rounding; integers exactly. A float result has the dtype of the float inputs."""
    got, want = flatten_results(got), flatten_results(want)
    assert len(got) == len(want), what
    for y, z in zip(got, want):
        y, z = y.detach().numpy(), np.asarray(z)
        assert y.shape == z.shape, f"{what}: shape {y.shape}, the formula has {z.shape}"
        if z.dtype.kind != "f":
            assert y.dtype == np.int64, what
            np.testing.assert_array_equal(y, z, err_msg=what)
            continue
        assert y.dtype == dtype, f"{what}: dtype {y.dtype}"
        tol = 1e-9 if dtype is np.float64 else 1e-4
        np.testing.assert_allclose(y, z, rtol=tol, atol=tol * max(1.0,
                                                                  np.abs(z[np.isfinite(z)]).max(initial=0)),
                                   err_msg=what)


def rounded(args, dtype):
    """Round the floats to this dtype, then return float64 for the formula."""
    return {k: x.astype(dtype).astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
            for k, x in args.items()}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("row", ROWS)
@quick
@given(data=st.data())
def test_values_equal_the_formula(row, data):
    d = Draw(data)
    dtype = d.one_of(np.float64, np.float32)
    args = rounded(row.draw(d), dtype)
    with np.errstate(all="ignore"):
        want = row.formula(**args)
    if row.function:
        inputs = arrays_to_tensors(args, dtype)
        compare(call_function(row, inputs, d.one_of(True, False)), want, dtype, row.function)
        if "inplace" in parameters_of(getattr(nn.functional, row.function)):
            x = inputs["input"]
            assert getattr(nn.functional, row.function)(**inputs, inplace=True) is x
            compare(x, want, dtype, f"{row.function}(inplace=True)")
    if row.module and (got := call_module(row, args, dtype)) is not None:
        compare(got, want, dtype, row.module)


def difference_quotient(f, args, directions, h):
    """Return the slope of f along the directions, by central differences."""
    there, back = ({k: x + s * h * directions[k] if k in directions else x for k, x in args.items()}
                   for s in (1, -1))
    return (f(there) - f(back)) / (2 * h)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("row", [p for p in OF_FUNCTIONS if p.values[0].gradient])
@few
@given(data=st.data())
def test_gradient_is_the_derivative_of_the_formula(row, data):
    d = Draw(data, smooth=True)
    args = row.draw(d)
    learn = [k for k, x in args.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"
             and k not in row.fixed]
    weights = {}

    def total(results):
        """Return the weighted sum of the float results."""
        sum_ = 0
        for i, y in enumerate(flatten_results(results)):
            if (y.dtype.is_floating_point if isinstance(y, flow.Tensor) else y.dtype.kind == "f"):
                w = weights.setdefault(i, d.rng.standard_normal(tuple(y.shape)))
                sum_ = (y * (flow.tensor(w) if isinstance(y, flow.Tensor) else w)).sum() + sum_
        return sum_

    inputs = arrays_to_tensors(args, learn=learn)
    loss = total(call_function(row, inputs))
    if not learn:
        assert not loss.requires_grad if isinstance(loss, flow.Tensor) else True
        return
    loss.backward()
    directions = {k: d.rng.standard_normal(args[k].shape) for k in learn}
    got = sum(float((inputs[k].grad.numpy() * directions[k]).sum()) for k in learn
              if inputs[k].grad is not None)
    with np.errstate(all="ignore"):
        # a corner closer than one step spoils the difference; a wrong gradient is wrong at every step size
        found = [difference_quotient(lambda a: float(total(row.formula(**a))), args, directions, h)
                 for h in (1e-5, 1e-6, 1e-7)]
    assert any(abs(got - want) <= 1e-5 * max(1.0, abs(want)) for want in found), (got, found)


# parameters of gumbel_softmax, dropout, and others in addition to their formulas
NOT_IN_FORMULAS = {"inplace", "device", "dtype", "generator"}


@pytest.mark.parametrize("row", ROWS)
def test_names_and_defaults(row):
    """The formula's parameters, their order, and their defaults equal those of the function and of the
    module.
    """
    wanted = {k: p.default for k, p in parameters_of(row.formula).items()}
    if row.function:
        own = {k: p.default for k, p in parameters_of(getattr(nn.functional, row.function)).items()
               if k not in NOT_IN_FORMULAS | {"training"} or k in wanted}
        assert own == wanted and list(own) == list(wanted)
    if row.module:
        made = {k: p.default for k, p in parameters_of(getattr(nn, row.module).__init__).items()}
        for name in wanted.keys() & made.keys() - set(row.other_defaults):
            assert made[name] == wanted[name], name


# ---- completeness: functions without a formula in the table, and the file of their law
ON_DEVICE = {
    "test_recurrent": {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"},
    "test_running_statistics": {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d",
                                "InstanceNorm2d", "InstanceNorm3d", "SyncBatchNorm"},
    "test_random_layers": {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "dropout",
                           "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "gumbel_softmax"},
    "test_attention": {"MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer",
                       "TransformerDecoder",
                       "TransformerDecoderLayer", "Transformer", "multi_head_attention_forward"},
    "test_containers": {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"},
    "test_module": {"Module", "Parameter"},
    "the folder graph": {"Graph"},
    "test_lazy": {"LazyLinear", "UninitializedParameter", *(f"Lazy{name}{n}d" for n in (1, 2, 3) for name in (
        "Conv", "ConvTranspose", "BatchNorm", "InstanceNorm"))},
    "oneflow04/test_record_modules": {
        "CoinFlip", "CropMirrorNormalize", "OFRecordBytesDecoder", "OFRecordImageDecoder",
        "OFRecordImageDecoderRandomCrop",
        "OFRecordRawDecoder", "OFRecordReader", "OfrecordBytesDecoder", "OfrecordRawDecoder",
        "OfrecordReader"},
}


def test_every_layer_and_function_has_a_formula_or_a_law():
    layers = {n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and not n.startswith("_")}
    functions = {n for n in dir(nn.functional) if isinstance(getattr(nn.functional, n), PublicFunction)}
    elsewhere = set().union(*ON_DEVICE.values())
    known = {r.function for r in TABLE} | {r.module for r in TABLE} | elsewhere
    assert layers | functions <= known, f"without a formula: {sorted((layers | functions) - known)}"
    assert known - {
        None} <= layers | functions, f"not there any more: {sorted(known - {None} - layers - functions)}"


@pytest.mark.parametrize(("dtype", "eps"), [(flow.float64, 2.0 ** -52), (flow.float32, 2.0 ** -23),
                                            (flow.float16, 2.0 ** -10), (flow.bfloat16, 2.0 ** -7)])
def test_default_eps_of_rms_norm_is_the_machine_epsilon(dtype, eps):
    """The mean square equals eps, so the result is the square root of 1/2, up to a few roundings."""
    x = flow.full((4,), eps ** 0.5, dtype=dtype)
    y = nn.functional.rms_norm(x, (4,)).to(flow.float64).numpy()
    np.testing.assert_allclose(y, 0.5 ** 0.5, rtol=4 * eps)


def test_inplace_layers_write_into_their_input():
    """The layer's option and the function's option have the same effect."""
    for row in TABLE:
        if row.module and "inplace" in parameters_of(getattr(nn, row.module).__init__):
            options = {k: 1.0 for k in ("threshold", "value") if k in parameters_of(row.formula)}
            x = flow.tensor([-2.0, 0.5, 7.0])
            y = getattr(nn, row.module)(**options)(x)
            assert x.tolist() == [-2, 0.5, 7], row.module
            assert getattr(nn, row.module)(**options, inplace=True).eval()(x) is x, row.module
            if row.module != "RReLU":
                np.testing.assert_array_equal(x.numpy(), y.numpy())
