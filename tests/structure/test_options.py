"""Rule: no parameter is accepted and silently ignored.

A parameter that its function does not read needs a reason in REASONS. Options without an effect warn once or
are refused.
"""
import ast
from pathlib import Path

import numpy as np
import pytest
from test_settings import collect_option_warnings, nothing_said  # noqa: F401

import flowedu as flow
from common import fresh_session, refused  # noqa: F401

ROOT = Path(flow.__file__)
PROTOCOL = {"exc", "error", "memo", "protocol"}           # of __exit__, __deepcopy__, __reduce_ex__
# Files whose functions have the signature of a table or an interface that calls them.
INSIDE = ("ops/", "core/ops/", "onnx/ops.py", "core/sbp/", "core/job/", "core/layers/context.py",
          "core/values/placeholder.py", "core/graph/plan.py", "core/graph/devices.py", "core/layers/group.py",
          "core/grad/custom.py", "tensor/inplace/tape_nodes.py", "distributed/", "oneflow04/job/",
          "oneflow04/custom/", "oneflow04/initializers.py", "oneflow04/optim/loss_scale.py",
          "optim/lr_scheduler/",
          "oneflow04/optim/warmup.py", "oneflow04/optim/optimizers.py", "nn/parallel/",
          "flowedu_course/laws/",
          "distributions/transforms.py",
          "optim/torch_form.py", "optim/by_formula.py",
          "mock/insides/")                                # options of other libraries; see their docstrings
# Files below INSIDE whose functions users call.
USERS = ("core/eager/tensor.py", "core/eager/arrays.py", "distributed/comm.py", "mock/insides/functionals.py")
REASONS = ({
     **{f"utils/profiler.profile.__init__({a})": "PyTorch's option; the docstring says that it has no effect"
        for a in ("activities", "with_flops", "with_modules", "experimental_config",
                  "execution_trace_observer", "acc_events", "use_cuda", "options")},
     "utils/profiler.tensorboard_trace_handler(use_gzip)": "the docstring says that it has no effect",
     "utils/profiler.profile.key_averages(options)": "options of later versions of PyTorch",
     "utils/profiler_events.EventList.table(options)": "options of later versions of PyTorch",
     "nn/amp/casts.is_autocast_enabled(device_type)": "one switch for all devices",
     "cuda/__init__.get_rng_state(device)": "one generator for all devices",
     "cuda/__init__.set_rng_state(device)": "one generator for all devices",
     "nn/amp/grad_scaler.StaticGradScaler.update(new_scale)": "it never changes",
     "core/values/blob.BlobDef.__array_ufunc__(options)": "NumPy's protocol; where the blob answers, there "
     "are none", **{f"aliases._{f}": "Python's protocol of imports" for f in (
         "Finder.find_spec(folders)", "Finder.find_spec(target)", "Loader.create_module(spec)",
         "Loader.get_code(name)")},
     **{f"mock/modules.Finder.{f}": "Python's protocol of imports" for f in (
         "find_spec(folders)", "find_spec(target)")},
     **{f"distributions/utils.lazy_property.{f}": "Python's protocol of attributes" for f in (
         "__get__(owner)", "__set_name__(owner)")},
     **{f"flowedu_course/teach/worker._FromMemory.{f}": "Python's protocol of imports" for f in (
         "create_module(spec)", "find_spec(path)", "find_spec(target)")},
     "flowedu_course/teach/worker.judge(hole)": "what judge.judged calls when it has read an answer",
     "flowedu_course/teach/proxy.Far.load(file)": "in the place of swap.load: the answer is in another "
     "process", "flowedu_course/teach/proxy.Far.load(module)": "likewise",
     **{f"utils/checkpoint.{f}": "as PyTorch has them: there is one way to compute again, and it is looked at"
        for f in (
            "checkpoint(use_reentrant)", "checkpoint(determinism_check)", "checkpoint(debug)",
            "checkpoint(early_stop)", "checkpoint_sequential(use_reentrant)")},
     "utils/checkpoint._Recomputation.pack(x)": "only its place in line is kept",
     "autograd/variable.Variable.__new__(volatile)": "PyTorch's does nothing either, since 0.4",
     "mock/insides/functionals.cast(pin_memory)": "what is cast is in main memory, or on the GPU it was on",
     "mock/insides/functionals.layer_norm(begin_params_axis)": "parameters have the shape of what is "
     "normalised", "mock/insides/functionals.layer_norm_affine(begin_params_axis)": "likewise",
     "tensor/gradients/grad_mode.set_grad_enabled.__new__(mode)": "its __init__ reads it",
     "autograd/graph.save_on_cpu.__init__(device_type)": "whatever the device, tensors are in main memory",
     "core/trace/compiled.CompiledGraph.make_result(args)": "nn.Graph's build may write into them "
     "(nn/graph/written.py)", "core/trace/compiled.CompiledGraph.make_result(kwargs)": "see args",
     "nn/graph/proxies.GraphModule.debug(options)": "checked by Graph.debug, which calls it",
     "tensor/global_tensors/creation.global_to_global(check_meta)":
        "the ranks agree on a global tensor already",
     "nn/modules/linear.Identity.__init__(args)": "its meaning is to take anything",
     "nn/modules/linear.Identity.__init__(kwargs)": "its meaning is to take anything",
     "saving/state.load(support_pytorch_format)": "files of PyTorch are refused in any case",
     "oneflow04/functions/image_padding.pad_grad(constant_value)":
        "the border that it fills has no part in the gradient",
     "oneflow04/functions/unique_and_finite.sync_dynamic_resize(eager)": "results are the same either way",
     "oneflow04/functions/sort_and_top_k.top_k(sorted)": "a sorted result is one of those that False allows",
     "tensor/indexing/sort_and_search.topk(sorted)": "likewise",
     "tensor/indexing/sort_and_search.unique(sorted)": "likewise",
     "tensor/indexing/sort_and_search.sort(stable)": "a stable order is one of those that False allows",
     "tensor/indexing/sort_and_search.argsort(stable)": "likewise",
     "tensor/devices/conversion.Moved.backward(node)": "every node's backward is given its node",
     "tensor/devices/conversion.type_(non_blocking)": "a copy is complete when the call returns",
     "tensor/devices/conversion.pin_memory(device)": "what is pinned is so for all GPUs",
     "cuda/graphs.graph(pool)": "every graph has memory of its own; pools that are shared would save some",
     "cuda/plan.DeviceExecutor.stale(share)": "what Executor.stale takes; nothing on a GPU depends on a "
     "number of threads", "tensor/construction/creation._make_tensor(copy)": "data are always copied",
     **{f"vision/transforms/fixed.Transform.__new__({a})": "its __init__ reads them"
        for a in ("args", "kwargs")},
     "vision/models/neural_style_transfer/stylenet.neural_style_transfer(progress)": "nothing is downloaded",
 })


def functions(tree, owner=""):
    for n in ast.iter_child_nodes(tree):
        if isinstance(n, ast.ClassDef):
            yield from functions(n, f"{owner}{n.name}.")
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield owner + n.name, n
        else:
            yield from functions(n, owner)


def unread(tree):
    """Yield `function(parameter)` for each unread parameter, without stubs that only raise or pass."""
    for name, f in functions(tree):
        body = [s for s in f.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if all(isinstance(s, (ast.Raise, ast.Pass)) for s in body):
            continue
        a = f.args
        given = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None]
        used = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
        yield from (f"{name}({p})" for p in given if p not in used and p not in ("self", "cls")
                    and not p.startswith("_"))


def test_unread_parameters_are_found():
    code = ("def f(a, b, *c, d=1):\n    '''b'''\n    return a\n\nclass A:\n    def g(self, x):\n        "
            "return 0\n")
    assert list(unread(ast.parse(code))) == ["f(b)", "f(d)", "f(c)", "A.g(x)"]


def test_every_parameter_is_read_or_has_a_reason():
    found = set()
    tops = ROOT.parent, ROOT.parents[2] / "course"
    for path, where in sorted((p, p.relative_to(top).as_posix()) for top in tops for p in top.rglob("*.py")):
        if where.startswith(USERS) or not where.startswith(INSIDE):
            found |= {f"{where[:-3]}.{e}" for e in unread(ast.parse(path.read_text(encoding="utf-8")))
                      if e.rpartition("(")[2][:-1] not in PROTOCOL}
    found = {e for e in found if not e.rpartition("(")[0].rpartition(".")[2].startswith("_") or ".__" in e}
    assert found - set(
        REASONS) == set(), "read the parameter, refuse it, say once that it does nothing, or give a reason"
    assert {r for r in REASONS if "(" in r
            and "._" not in r} - found == set(), "a reason for what is read by now"


x, w = flow.ones(2, 3), flow.ones(2, requires_grad=True)
nn, F = flow.nn, flow.nn.functional


def image():
    from PIL import Image
    return Image.new("RGB", (4, 4))


WARNS = {
    **{f"{o.__name__}({k})": lambda o=o, k=k: o([w], **{k: True}) for o, ks in (
        (flow.optim.SGD, ("fused", "foreach", "contiguous_params")), (flow.optim.Adam,
                                                                      ("fused", "capturable")),
        (flow.optim.AdamW, ("foreach",)), (flow.optim.RMSprop, ("foreach", "capturable")),
        (flow.optim.Adagrad, ("fused", "foreach")), (flow.optim.Adadelta, ("foreach", "capturable")),
        (flow.optim.LAMB, ("fused", "contiguous_params")), (flow.optim.ASGD, ("foreach", "capturable")),
        *((o, ("foreach", "capturable")) for o in (
            flow.optim.Adamax, flow.optim.NAdam, flow.optim.RAdam, flow.optim.Rprop))) for k in ks},
    "gumbel_softmax(eps)": lambda: F.gumbel_softmax(x, eps=1.0),
    "embedding(sparse)": lambda: F.embedding(flow.tensor([0]), x, sparse=True),
    "gradcheck(nondet_tol)": lambda: flow.autograd.gradcheck(
        lambda a: a * 2, flow.ones(1, dtype=flow.float64, requires_grad=True), nondet_tol=1.0),
    "save_on_cpu(pin_memory)": lambda: flow.autograd.graph.save_on_cpu(pin_memory=True),
    **{f"DataLoader({k})": lambda k=k, v=v: flow.utils.data.DataLoader([1, 2], **{k: v}) for k, v in (
        ("pin_memory", True), ("pin_memory_device", "cuda"), ("in_order", False))},
    "gather(sparse_grad)": lambda: flow.gather(x, 0, flow.tensor([[0]]), sparse_grad=True),
    "isin(assume_unique)": lambda: flow.isin(x, x, assume_unique=True),
    "tensor(pin_memory)": lambda: flow.tensor([1], pin_memory=True),
    "empty(pin_memory)": lambda: flow.empty(1, pin_memory=True),
    "fork_rng(devices)": lambda: flow.fork_rng(devices=[0]),
    "LazyAdam": lambda: flow.optimizer.LazyAdam(flow.optimizer.PiecewiseConstantScheduler([], [0.1])),
    "add_optimizer(is_sparse)": lambda: nn.Graph().add_optimizer(flow.optim.SGD([w], 0.1), is_sparse=True),
    "debug(max_py_stack_depth)": lambda: nn.Graph().debug(-1, max_py_stack_depth=3),
    "antialias": lambda: flow.vision.transforms.functional.resize(image(), [2, 2], antialias=False),
}


@pytest.mark.parametrize("name", WARNS)
def test_an_option_without_effect_warns_once(name):
    warned = collect_option_warnings(lambda: (WARNS[name](), WARNS[name]()))
    assert len(warned) == 1 and name in str(warned[0].message)


REFUSED = {
    **{f"{o.__name__}(differentiable)": (NotImplementedError, lambda o=o: o([w], differentiable=True))
       for o in (
           flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW, flow.optim.RMSprop, flow.optim.Adagrad,
           flow.optim.Adadelta,
           flow.optim.ASGD, flow.optim.Adamax, flow.optim.NAdam, flow.optim.RAdam, flow.optim.Rprop)},
    "process_group": (NotImplementedError,
                      lambda: nn.SyncBatchNorm.convert_sync_batchnorm(nn.ReLU(), process_group=1)),
    "output_size": (ValueError, lambda: flow.repeat_interleave(x, 2, 0, output_size=5)),
    "BatchNorm2d(device)": (RuntimeError, lambda: nn.BatchNorm2d(3, affine=False, device="cuda")),
    "Generator(device)": (RuntimeError, lambda: flow.Generator("cuda")),
    "mask(device)": (RuntimeError, lambda: nn.Transformer.generate_square_subsequent_mask(3, device="cuda")
                     if hasattr(nn, "Transformer") else nn.BatchNorm1d(1, affine=False, device="cuda")),
    "debug(nonsense)": (TypeError, lambda: nn.Graph().debug(0, nonsense=1)),
    "Graph(nonsense)": (TypeError, lambda: nn.Graph(nonsense=1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_option_is_refused(name):
    error, call = REFUSED[name]
    with refused(error):
        call()


def test_deprecated_reduction_arguments():
    a, p, n = (flow.tensor(np.random.default_rng(i).standard_normal((4, 3)).astype(np.float32))
               for i in range(3))

    def loss(**o):
        return F.triplet_margin_loss(a, p, n, **o).numpy()

    np.testing.assert_array_equal(loss(reduce=False, size_average=False), loss(reduction="none"))
    np.testing.assert_array_equal(loss(size_average=False), loss(reduction="sum"))
    np.testing.assert_array_equal(loss(reduce=True, reduction="sum"), loss(reduction="mean"))


def test_a_correct_output_size_is_accepted():
    assert flow.repeat_interleave(x, flow.tensor([1, 2]), 0, output_size=3).shape == (3, 3)
    assert flow.repeat_interleave(x, 2, output_size=12).shape == (12,)
