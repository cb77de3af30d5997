"""flow.user_op_builder for registered ops with OneFlow's names, and flow.experimental.custom_op_module for a
folder.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from custom_ops import make_tensors, own_registry  # noqa: F401
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.record import REQUIRED
from flowedu.custom import load_library
from flowedu.custom.module import read_definition
from flowedu.custom.optypes import TYPES, op_type
from flowedu.errors import CheckError, JobBuildAndInferError, UnsupportedError

COUNT = itertools.count()               # names are unique in a job


def build(type_name, inputs, outputs, **attrs):
    """Build the op with flow.user_op_builder."""
    b = flow.user_op_builder(f"{type_name}_{next(COUNT)}").Op(type_name)
    for name, blobs in inputs.items():
        b = b.Input(name, blobs if isinstance(blobs, (list, tuple)) else [blobs])
    for name in outputs:
        b = b.Output(name)
    for name, value in attrs.items():
        b = b.Attr(name, value)
    return b.Build().InferAndTryRun()


def sole(type_name, inputs, output, **attrs):
    return build(type_name, inputs, [output], **attrs).SoleOutputBlob()


# --- values
# -----------------------------------------------------------------------------------------------------------

x, y, image = f32(4, 6), f32(4, 6, seed=1), f32(2, 3, 8, 8)
CASES = {
    "relu": (lambda: ([x], "in", "out", {}), lambda a: np.maximum(a, 0)),
    "tanh": (lambda: ([x], "x", "y", {}), np.tanh),
    "negative": (lambda: ([x], "x", "y", {}), np.negative),
    "multiply": (lambda: ([x, y], "x y", "out", {}), np.multiply),
    "broadcast_sub": (lambda: ([x, y[0]], "x y", "z", {}), np.subtract),
    "broadcast_greater": (lambda: ([x, y], "x y", "z", {}), lambda a, b: (a > b).astype(np.int8)),
    "add_n": (lambda: ([[x, y, x]], "in", "out", {}), lambda xs: sum(xs)),
    "concat": (lambda: ([[x, y]], "in", "out", {"axis": 1}), lambda xs: np.concatenate(xs, 1)),
    "matmul": (lambda: ([x, y], "a b", "out", {"transpose_b": True}), lambda a, b: a @ b.T),
    "bias_add": (lambda: ([x, y[0]], "a b", "out", {"axis": 1}), np.add),
    "scalar_add": (lambda: ([x], "in", "out", {"has_int_operand": True, "int_operand": 2}), lambda a: a + 2),
    "scalar_mul": (lambda: ([x], "in", "out", {"has_float_operand": True, "float_operand": 6}),
                   lambda a: a * 6),
    "reshape": (lambda: ([x], "in", "out", {"shape": [3, 8]}), lambda a: a.reshape(3, 8)),
    "transpose": (lambda: ([x], "input", "output", {"perm": [1, 0]}), np.transpose),
    "expand_dims": (lambda: ([x], "in", "out", {"axis": 1}), lambda a: a[:, None]),
    "flatten": (lambda: ([image], "in", "out", {"start_dim": 1}), lambda a: a.reshape(2, -1)),
    "slice": (lambda: ([x], "x", "y", {"start": [1, 0], "stop": [4, 6], "step": [2, 3]}),
              lambda a: a[1:4:2, 0:6:3]),
    "gather": (lambda: ([x, np.array([2, 0])], "in indices", "out", {}), lambda a, i: a[i]),
    "cast": (lambda: ([x], "in", "out", {"dtype": flow.float64}), lambda a: a.astype(np.float64)),
    "where": (lambda: ([(x > 0).astype(np.int8), x, y], "condition x y", "out", {}), np.where),
    "reduce_sum": (lambda: ([x], "input_tensor", "output_tensor", {"axis": [0]}), lambda a: a.sum(0)),
    "argmax": (lambda: ([x], "in", "out", {}), lambda a: a.argmax(-1)),
    "softmax": (lambda: ([x], "in", "out", {}), lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    "leaky_relu": (lambda: ([x], "x", "y", {"alpha": 0.5}), lambda a: np.where(a > 0, a, a / 2)),
    "zero_like": (lambda: ([x], "like", "out", {}), np.zeros_like),
}


@pytest.mark.parametrize("name", CASES)
def test_types_of_oneflow(name):
    """OneFlow's argument and attribute names work eagerly and in a job."""
    make, reference = CASES[name]
    arrays, names, output, attrs = make()
    flat = [a for x in arrays for a in (x if isinstance(x, list) else [x])]
    want = reference(*arrays)

    def call(*values):
        rest = list(values)
        given = {n: [rest.pop(0) for _ in (a if isinstance(a, list) else [a])]
                 for n, a in zip(names.split(), arrays)}
        return sole(name, given, output, **attrs)

    for got in (call(*map(flow.from_numpy, flat)).numpy(), run(call, *flat)):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_convolution_and_pooling():
    torch = pytest.importorskip("torch")
    w, b = f32(4, 3, 3, 3, seed=2), f32(4, seed=3)
    t = torch.tensor
    conv = torch.conv2d(t(image), t(w), t(b), stride=2, padding=1).numpy()
    first = torch.nn.functional.max_pool2d(t(image), 3, 2, 1).numpy()
    last = np.moveaxis(first, 1, 3)

    def body(i, w, b):
        c = sole("conv2d", {"in": i, "weight": w, "bias": b}, "out", filters=4, padding_before=[1, 1],
                 kernel_size=[3, 3], strides=[2, 2], dilation_rate=[1, 1])
        options = dict(padding="customized", padding_before=[1, 1], padding_after=[1, 1], pool_size=[3, 3],
                       strides=[2, 2])
        p = sole("max_pool_2d", {"x": i}, "y", **options)
        q = sole("max_pool_2d", {"x": flow.transpose(i, perm=[0, 2, 3, 1])}, "y", data_format="channels_last",
                 **options)
        return c, p, q

    eagerly = [v.numpy() for v in body(*map(flow.tensor, (image, w, b)))]
    in_a_job = run(body, image, w, b, returns=tuple[tp.Numpy, tp.Numpy, tp.Numpy])
    for got, want in zip([*eagerly, *in_a_job], (conv, first, last) * 2, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_two_outputs_keep_their_requested_order():
    labels = np.array([0, 5, 2, 1], np.int32)
    prob = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    loss = -np.log(prob[np.arange(4), labels])

    def body(x, labels):
        op = build("sparse_softmax_cross_entropy", {"prediction": x, "label": labels}, ["out", "prob"],
                   depth=6)
        assert type(op.RemoteBlobList()) is tuple and list(op.RemoteBlobDict()) == ["out", "prob"]
        assert all(type(v) is list and len(v) == 1 for v in op.RemoteBlobDict().values())
        with refused(CheckError, "2 outputs", "RemoteBlobList()"):
            op.SoleOutputBlob()
        return op.RemoteBlobList()

    for got in ([v.numpy() for v in body(flow.tensor(x), flow.tensor(labels))],
                run(body, x, labels, returns=tuple[tp.Numpy, tp.Numpy])):
        np.testing.assert_allclose(got[0], loss, rtol=1e-5)
        np.testing.assert_allclose(got[1], prob, rtol=1e-5)


def test_the_name_has_the_prefix_of_the_namespace():
    names = []

    def body(a):
        with flow.scope.namespace("outer"):
            b = flow.consistent_user_op_builder("inner").Op("relu").Input("in", [a]).Output("out").Build() \
                .InferAndTryRun().RemoteBlobList()
        assert type(b) is tuple and len(b) == 1
        names.append(b[0].op_name)
        return b[0]

    run(body, x)
    assert names[0] == "outer-inner"


def test_records_are_types_under_their_own_names():
    got = sole("squared_difference", {"x": flow.tensor(x), "y": flow.tensor(y)}, "z")
    np.testing.assert_allclose(got.numpy(), (x - y) ** 2, rtol=1e-5)
    flow.custom_op("myrelu", lambda x: np.maximum(x, 0), inputs=["in"], outputs=["out"])
    np.testing.assert_array_equal(run(lambda a: sole("myrelu", {"in": a}, "out"), x), np.maximum(x, 0))
    assert {t.inputs for n, t in TYPES.items() if n in ("relu", "gelu")} == {("in",)}
    assert op_type("matmul").attrs["transpose_a"] is False


def test_gradients_flow_through_the_builder():
    def body(a):
        w = flow.get_variable("w", (6, 5), initializer=flow.ones_initializer())
        loss = sole("matmul", {"a": sole("tanh", {"x": a}, "y"), "b": w}, "out")
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss

    job(body, x, type="train")(x)
    want = np.ones((6, 5)) - np.tanh(x).T @ np.ones((4, 5)) / 20
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), want, rtol=1e-5)


def test_a_module_builder_is_used_again():
    b = flow.user_op_module_builder("leaky_relu").InputSize("x", 1).Output("y").Attr("alpha",
                                                                                     0.5).CheckAndComplete()
    b.user_op_module.InitOpKernel()
    first, second = (b.OpName(n).Input("x",
                                       [flow.tensor(v)]).Build().InferAndTryRun().SoleOutputBlob().numpy()
                     for n, v in (("one", x), ("two", y)))
    np.testing.assert_array_equal(first, np.where(x > 0, x, x / 2))
    np.testing.assert_array_equal(second, np.where(y > 0, y, y / 2))
    with refused(ValueError, "the type is given already"):
        b.Op("relu")
    with refused(CheckError, "InputSize('x') does not fit"):
        b.InputSize("x", 1)


# --- refusals
# ---------------------------------------------------------------------------------------------------------

def chain(*steps):
    b = flow.user_op_builder("op1")
    for name, *arguments in steps:
        b = getattr(b, name)(*arguments)
    return b


t = flow.tensor(x)
RELU, IN, OUT = ("Op", "relu"), ("Input", "in", [t]), ("Output", "out")


@pytest.mark.parametrize("steps, error, words", [
    ([IN, OUT], CheckError, ["the op op1 has no type"]),
    ([("Op", "rleu"), IN, OUT], JobBuildAndInferError, ["no op type 'rleu'", "nearest is 'relu",
                                                        "flow.custom_op"]),
    ([RELU, OUT], JobBuildAndInferError, ["needs its input 'in'", "0 blobs"]),
    ([RELU, ("Input", "in", [t, t]), OUT], JobBuildAndInferError, ["needs its input 'in'", "2 blobs"]),
    ([RELU, IN, ("Input", "other", [t]), OUT], JobBuildAndInferError, ["has no input 'other'"]),
    ([RELU, IN], ValueError, ["output_arg_name out of op1 op is not set in python op builder",
                              '.Output("out")']),
    ([RELU, IN, OUT, ("Output", "mask")], JobBuildAndInferError, ["has no output 'mask'"]),
    ([RELU, IN, ("Output", "out", 2)], JobBuildAndInferError, ["gives one blob for out"]),
    ([RELU, IN, OUT, ("Attr", "alpha", 1.0)], JobBuildAndInferError, ["has no attribute 'alpha'"]),
    ([("Op", "reshape"), IN, OUT], JobBuildAndInferError, ["needs its attribute 'shape'"]),
    ([("Op", "bias_add"), ("Input", "a", [t]), ("Input", "b", [t]), OUT, ("Attr", "axis", 0),
      ("Attr", "size", 1)],
     JobBuildAndInferError, ["no attribute 'size'", "axis"]),
    ([("Op", "matmul"), ("Input", "a", [t]), ("Input", "b", [t]), OUT, ("Attr", "transpose_a", 1)],
     CheckError, ["attribute 'transpose_a' is of another kind", "False"]),
    ([("Op", "scalar_mul"), IN, OUT, ("Attr", "float_operand", "6")], CheckError,
     ["'float_operand' is of another kind"])])
def test_build_reports_missing_parts(steps, error, words):
    with refused(error, *words):
        chain(*steps).Build()


def test_calls_of_the_builder_are_checked():
    with refused(CheckError, "Input('in') is not a list", ".Input('in', [x])"):
        chain(RELU, ("Input", "in", t))
    for num in (0, 1.0, True):
        with refused(CheckError, "Output('out') has no number of blobs"):
            chain(RELU, ("Output", "out", num))
    with refused(CheckError, "name is not a string"):
        chain(RELU, ("Attr", 3, 1))
    with refused(CheckError, "the op's name is not a string"):
        flow.user_op_builder(7)
    with refused(CheckError, "op1 has not run", "InferAndTryRun"):
        chain(RELU, IN, OUT).Build().SoleOutputBlob()
    chain(RELU, IN, OUT, ("Attr", "device_sub_tag", "py")).Build()      # has no effect here


# --- a folder
# ---------------------------------------------------------------------------------------------------------

API = '''
import flowedu as flow

def user_relu_forward(x):
    op = (flow.user_op_builder("relu1").Op("user_relu_forward").Input("IN", [x]).Output("OUT")
          .Attr("device_sub_tag", "py").Build())
    return op.InferAndTryRun().SoleOutputBlob()
'''
KERNEL = '''
def forward(args):
    (x,) = args
    return (x > 0) * x

def backward(args):
    (y, dy) = args
    return (y > 0) * dy
'''
DEFINITION = '''
// REGISTER_USER_OP("user_relu_forward").Input("commented_out")
REGISTER_USER_OP("user_relu_forward")
  .Input("IN").Output("OUT")
  .Attr<std::string>("device_sub_tag", "py")
  .SetTensorDescInferFn([](user_op::InferContext *ctx) -> Maybe<void> { return Maybe<void>::Ok(); });
REGISTER_USER_OP("user_relu_backward").Input("y").Input("dy").Output("dx");
REGISTER_USER_OP_GRAD("user_relu_forward").SetBackwardOpConfGenFn([](user_op::BackwardOpConfContext* ctx) {
    return builder.OpTypeName("user_relu_backward").InputBind("y", ctx->FwOp().output("OUT", 0))
        .InputBind("dy", ctx->FwOp().output_grad("OUT", 0)).Output("dx").Build();
});
'''


def folder(path, api=API, kernel=KERNEL, definition=DEFINITION, name="user_relu"):
    (path / name).mkdir()
    for text, end in ((api, "py_api.py"), (kernel, "py_kernel.py"), (definition, "cpp_def.cpp")):
        if text is not None:
            (path / name / f"{name}_{end}").write_text(text, encoding="utf-8")
    return flow.experimental.custom_op_module(name, str(path))


@pytest.mark.parametrize("names", ["xy", "in out"])
def test_the_documents_user_relu(tmp_path, names):
    """Load an op folder in place, without a compiler; the argument names come from the C++ file."""
    a, b = names.split() if " " in names else names

    def replace(text):
        return text.replace('"IN"', f'"{a}"').replace('"OUT"', f'"{b}"')

    m = folder(tmp_path, replace(API), KERNEL, replace(DEFINITION))
    with refused(CheckError, "there is no api yet"):
        m.api  # noqa: B018
    assert m.py_api().cpp_def().py_kernel().build_load() is None

    def body(v):
        with flow.scope.placement("cpu", "0:0"):
            w = flow.get_variable("w", (5,), initializer=flow.zeros_initializer())
            loss = m.api.user_relu_forward(v + w)
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss

    v = np.array([-2, -1, 0, 1, 2], np.float32)
    np.testing.assert_array_equal(job(body, v, type="train")(v), [0, 0, 0, 1, 2])
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), [0, 0, 0, -0.2, -0.2], rtol=1e-6)
    assert {"user_relu_forward", "user_relu_backward"} <= set(REGISTRY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["user_relu"]
    load_library("user_relu.so")
    m.py_kernel().build_load()                                             # a second call, as in a notebook


def test_without_a_definition(tmp_path):
    """Use the names x and y, or those in the kernel file, with several outputs, shapes, and attributes."""
    m = folder(tmp_path, API.replace('"IN"', '"x"').replace('"OUT"', '"y"'), definition=None)
    m.py_api().py_kernel().build_load()
    v, = make_tensors(np.array([-1.0, 2.0]))
    m.api.user_relu_forward(v).sum().backward()
    np.testing.assert_array_equal(v.grad.numpy(), [0, 1])
    other = folder(tmp_path, None, '''
inputs, outputs, backward_inputs = ("a", "b"), ("total", "first"), ("dtotal", "a", "b")
infer = lambda a, b: [a.shape, b.shape[:1]]
def forward(args):
    a, b = args
    return [a + b, b[:, 0]]
def backward(args):
    d, a, b = args
    return [d, d * 2]
''', None, name="pair")
    other.py_kernel().build_load()
    a, b = make_tensors(f32(2, 3), f32(2, 3, seed=1))
    op = build("pair_forward", {"a": a, "b": b}, ["total", "first"])
    total, first = op.RemoteBlobList()
    np.testing.assert_array_equal(first.numpy(), b.numpy()[:, 0])
    total.sum().backward()
    np.testing.assert_array_equal(b.grad.numpy(), np.full((2, 3), 2))


def test_attributes_of_a_definition(tmp_path):
    text = ('REGISTER_CPU_ONLY_USER_OP("m_forward").Input("x").Output("y").Attr<float>("alpha", 0.5f)\n'
            '.Attr<bool>("on", true).Attr<int32_t>("n").Attr<std::vector<int32_t>>("many", {1})')
    d = read_definition("m", text)
    assert d.attrs == {"alpha": 0.5, "on": True, "n": REQUIRED, "many": (1,)} and d.backward == ("y", "dy")
    kernel = "def forward(args, alpha):\n    return args[0] * args[0].dtype.type(alpha)\n"
    m = folder(tmp_path, None, kernel, text, name="m")
    m.cpp_def().py_kernel().build_load()
    np.testing.assert_array_equal(sole("m_forward", {"x": t}, "y", n=1, many=[2]).numpy(), x / 2)
    np.testing.assert_array_equal(sole("m_forward", {"x": t}, "y", n=1, many=[2], alpha=2).numpy(), x * 2)


def test_missing_files_of_a_folder_are_reported(tmp_path):
    m = folder(tmp_path, API.replace("import flowedu", "import oneflow"), "forward = 3", None)
    with refused(CheckError, "user_relu_cpp_def.cpp does not exist", "the folder user_relu/"):
        m.cpp_def()
    for step in (m.cpp_kernel, m.gpu_kernel):
        with refused(UnsupportedError, "needs a C++ compiler", "py_kernel()"):
            step()
    with refused(CheckError, "user_relu_py_kernel.py has no forward"):
        m.py_kernel().build_load()
    m.files.clear()
    with pytest.raises(ModuleNotFoundError) as caught:
        m.py_api().build_load()
    assert "write `import flowedu as flow`" in caught.value.__notes__[0]
    with refused(CheckError, "not a Python name", at=False):
        flow.experimental.custom_op_module("a/b", tmp_path)


def test_experimental_has_the_typing_check():
    function = flow.experimental.enable_typing_check.function
    assert function is flow.oneflow04.job.call_signature.enable_typing_check
