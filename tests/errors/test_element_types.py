"""Law of refused dtypes: the received dtype is not among the expected ones, and each expected dtype works."""
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu._kernels import TABLE
from flowedu.core.ops import define as ops
from flowedu.core.ops.record import Kernel, Meaning
from flowedu.core.values.dtype import BY_CODE, dtype, dtypes, float32
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, FlowError
from laws.calls import attributes, cases, draw_values, input_name, label, thin, types_of

CALLS = cases(lambda op: op.examples or op.elementwise)
NAMES = re.compile(rf"(?<!a )\b({'|'.join(d.name for d in dtypes())})\b")


def call_with_dtype(op, example, t: dtype):
    """Return the example with dtype t for every float input, or else for the attribute dtype."""
    arrays = [draw_values(op.domain.get(input_name(op, i), "any"), s, a, np.random.default_rng(1), i)
              for i, (s, a) in enumerate(zip(example["shapes"], types_of(op, example, np.float32)))]
    xs = [flow.tensor(a).to(t) if a.dtype == np.float32 else flow.tensor(a) for a in arrays]
    return op.call(tuple(xs), attributes_of(op, example, t, arrays))


def attributes_of(op, example, t: dtype, arrays) -> tuple:
    """Return the example's attributes; without float inputs, the dtype attribute is replaced by t."""
    return tuple(t if name == "dtype" and not any(a.dtype == np.float32 for a in arrays) else a
                 for name, a in zip(op.attrs, attributes(op, example)))


def judge(refused, again, t: dtype) -> None:
    """Check the law for one error of a call with dtype t; `again` repeats the call with another dtype."""
    named = NAMES.findall(refused.expected)
    assert named or "no kernel" not in refused.problem, f"no type is named: {refused}"
    assert t.name not in named, f"expected is what came: {refused}"
    cast = re.search(r"flow\.cast\(\w+, flow\.(\w+)\)", refused.fix)
    assert cast is None or cast[1] in named, f"what is advised is not expected: {refused}"
    for name in named:
        try:
            again(getattr(flow, name))
        except FlowError as e:
            raise AssertionError(f"{name} is recommended: {refused}\nbut raises: {e}") from None


def refusals(again):
    """Return (dtype, error) for all dtypes that `again(dtype)` refuses."""
    for t in BY_CODE:
        try:
            again(t)
        except FlowError as e:
            if isinstance(e, DTypeError):
                yield t, e


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_expected_dtypes_work(case):
    op, example = case

    def again(t):
        return call_with_dtype(op, example, t)

    for t, e in refusals(again):
        judge(e, again, t)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_a_graph_raises_the_same_error(case):
    """Errors of infer and need_kernel on Specs, before any data exist."""
    op, example = case

    def again(t):
        specs = [Spec(tuple(s), t if a is np.float32 else flow.int64 if a is np.int64 else flow.int8)
                 for s, a in zip(example["shapes"], types_of(op, example, np.float32))]
        attrs = attributes_of(op, example, t, [np.empty(0, a) for a in types_of(op, example, np.float32)])
        op.need_kernel(specs, op.infer(specs, attrs), attrs)

    for t, e in refusals(again):
        judge(e, again, t)


@pytest.fixture
def one_type(monkeypatch):
    """Register an op whose only kernel is for float32, and thus for 16-bit floats, in a separate registry."""
    monkeypatch.setitem(TABLE, ("only_float32", 0), TABLE["softmax", 0])
    return ops.Op(ops.read("only(x, *, axis=-1) -> y"), Meaning(lambda x: "a->a", lambda x, axis: x),
                  Kernel("only_float32", pack=lambda x, axis: ((0,), ())))


def test_one_kernel_is_one_expected_type(one_type):
    x = flow.ones(3)
    for t in BY_CODE:
        if t in (float32, flow.float16, flow.bfloat16):
            assert one_type(x.to(t)).dtype is t
            continue
        with pytest.raises(DTypeError) as e:
            one_type(x.to(t))
        assert {*NAMES.findall(e.value.expected)} == {"float32", "float16", "bfloat16"}
        assert "flow.cast(x, flow.float32)" in e.value.fix


@pytest.mark.parametrize("half", [flow.float16, flow.bfloat16], ids=repr)
def test_layers_raise_the_same_error(half):
    """Public API calls, where the dtype comes from a module."""
    nn, y, z = flow.nn, flow.ones(2, 3, 8, 8), flow.ones(2, 3)
    for module, x in ((nn.Linear(3, 2), z), (nn.Conv2d(3, 2, 3), y), (nn.BatchNorm2d(3), y),
                      (nn.LayerNorm(3), z),
                      (nn.LSTM(3, 2), flow.ones(2, 2, 3)), (nn.MaxPool2d(2), y), (nn.Softmax(1), z),
                      (nn.GELU(), z)):
        def again(t):
            return module.to(t)(x.to(t))  # noqa: B023

        try:
            again(half)
        except DTypeError as e:
            judge(e, again, half)
            assert "model.float()" in e.fix
            module.float()(x.float())


@pytest.mark.parametrize("kind", [flow.int32, flow.uint8], ids=repr)
def test_a_graph_refuses_before_it_runs(kind):
    class Shares(flow.nn.Graph):
        def build(self, x):
            return flow.ops.REGISTRY["softmax"](x, axis=1)

    with pytest.raises(DTypeError) as e:
        Shares()(flow.ones(2, 3).to(kind))
    assert {*NAMES.findall(e.value.expected)} == {"float32", "float64", "float16", "bfloat16"}


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
@given(data=st.data())
def test_unsupported_numpy_integers_get_a_recommended_dtype_that_holds_the_values(name, data):
    """In every API, following the fix keeps every value (for uint64, those up to 2**63 - 1)."""
    low, high = np.iinfo(name).min, min(np.iinfo(name).max, 2 ** 63 - 1)
    a = np.array(data.draw(st.lists(st.integers(low, high), max_size=4)), name)
    for door in (flow.tensor, flow.from_numpy, flow.as_tensor, lambda a: flow.zeros(2, dtype=a.dtype),
                 lambda a: flow.zeros(2, dtype=name), lambda a: flow.ones(1).to(a.dtype),
                 lambda a: getattr(flow, name)):
        with pytest.raises(FlowError) as caught:
            door(a)
        kind = re.search(r"flow\.(\w+) holds", caught.value.fix)[1]
        assert flow.tensor(a.astype(kind)).tolist() == a.tolist()
