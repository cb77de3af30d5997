"""Names that programs import in addition to layers: testing, profiler, multiprocessing.spawn, hub, random,
special, and types.
"""
import importlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
from flowedu import mock
from flowedu import profiler as our_profiler
from flowedu.errors import ArgumentError, FlowError, UnsupportedError
from flowedu.mock.insides import torch_testing


@pytest.fixture
def torch():
    with mock.enable("torch"):
        yield importlib.import_module("torch")


# --- testing
# ---------------------------------------------------------------------------------------------------------

KINDS = ["float32", "float64", "float16", "bfloat16", "int64", "uint8"]
numbers = st.sampled_from([0.0, 1.0, 1 + 1e-7, 1 + 1e-6, 1 + 2e-6, 1.001, 1e-5, 2e-5, 3.0, float("nan"),
                           float("inf")])
values = st.one_of(st.lists(numbers, max_size=2), numbers)


def is_accepted(close, a, b, options) -> bool:
    try:
        close(a, b, **options)
    except AssertionError:
        return False
    return True


@pytest.mark.torch
@given(values, values, st.sampled_from(KINDS), st.sampled_from(KINDS), st.booleans(), st.booleans(),
       st.booleans(), st.sampled_from([None, (0.0, 0.0), (1e-2, 0.0), (0.0, 1e-2)]))
def test_assert_close_agrees_with_pytorch(a, b, kind_a, kind_b, equal_nan, check_dtype, python, limits):
    torch = pytest.importorskip("torch")
    options = {"equal_nan": equal_nan, "check_dtype": check_dtype}
    if limits:
        options.update(rtol=limits[0], atol=limits[1])

    def pair(lib):
        made = [x if python else lib.tensor(np.asarray(x, "f8" if "float" in k else "f4").tolist()
                                            if "float" in k else
                                            np.nan_to_num(np.asarray(x), nan=5,
                                                          posinf=7).astype(int).tolist(),
                                            dtype=getattr(lib, k)) for x, k in ((a, kind_a), (b, kind_b))]
        return {"x": [made[0]]}, {"x": [made[1]]}

    try:
        want = is_accepted(torch.testing.assert_close, *pair(torch), options)
    except (ValueError, TypeError):                           # a list compared with a number
        want = False
    assert is_accepted(torch_testing.assert_close, *pair(flow), options) is want


def test_assert_close_reports_the_position(torch):
    with pytest.raises(AssertionError, match=r"(?s)at \['w'\]\[1\].*Mismatched elements: 1 / 4.*index "
                       r"\(1, 0\)"):
        torch.testing.assert_close({"w": [1, torch.zeros(2, 2)]},
                                   {"w": [1, torch.tensor([[0.0, 0.0], [2.0, 0.0]])]})
    for a, b, words in ((torch.ones(2), torch.ones(3), "'shape'"), ({"a": 1}, {"b": 1}, "keys"),
                        ([1], [1, 2], "lengths"),
                        (torch.ones(2), None, "None"), (torch.ones(2), [1.0, 1.0], "compared")):
        with pytest.raises(AssertionError, match=words):
            torch.testing.assert_close(a, b)
    with pytest.raises(AssertionError, match="^mine$"):
        torch.testing.assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^mine: Scalars"):
        torch.testing.assert_close(1, 2, msg=lambda said: "mine: " + said)
    with pytest.raises(ArgumentError, match="rtol and atol"):
        torch.testing.assert_close(1, 1, rtol=0.1)


# --- profiler
# --------------------------------------------------------------------------------------------------------

@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Profiler")
@given(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2), st.integers(0, 3))
def test_profiler_schedules_match_pytorch(wait, warmup, active, repeat, skip_first):
    theirs = pytest.importorskip("torch").profiler.schedule
    plan = dict(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
    ours, theirs = our_profiler.schedule(**plan), theirs(**plan)
    assert [ours(i).name for i in range(25)] == [theirs(i).name for i in range(25)]


def test_ranges_are_counted_and_their_times_add_up(torch, tmp_path):
    from torch.profiler import ProfilerActivity, profile, record_function

    @record_function("inner")
    def inner():
        return torch.ones(3).sum()

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof, record_function("outer"):
        inner()
        inner()
    with record_function("not seen"):
        pass
    found = {e.key: e for e in prof.key_averages()}
    assert {k: e.count for k, e in found.items()} == {"outer": 1, "inner": 2, "constant": 2, "sum": 2}
    outer, inner = found["outer"], found["inner"]
    assert outer.cpu_time_total == pytest.approx(outer.self_cpu_time_total + inner.cpu_time_total)
    assert inner.cpu_time == inner.cpu_time_total / 2
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=1).splitlines()
    assert table[3].startswith("outer") and not any(line.startswith("inner") for line in table)
    prof.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text("utf-8"))["traceEvents"]
    assert [e["name"] for e in events] == [*["constant", "sum", "inner"] * 2, "outer"]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", [1, 3, 4, 5, 8, 11])
def test_traces_are_ready_at_the_same_steps_as_in_pytorch(tmp_path, steps):
    theirs, found = pytest.importorskip("torch").profiler, []
    write = our_profiler.tensorboard_trace_handler(tmp_path / "log", worker_name="w")
    for lib in (theirs, our_profiler):
        ready = []
        with lib.profile(activities=[lib.ProfilerActivity.CPU],
                         on_trace_ready=lambda p, r=ready: r.append(p.step_num),
                         schedule=lib.schedule(wait=1, warmup=1, active=2, repeat=2)) as prof:
            for _ in range(steps):
                prof.step()
        found.append(ready)
    assert found[1] == found[0]
    with our_profiler.profile(schedule=our_profiler.schedule(wait=1, warmup=1, active=2),
                                on_trace_ready=write) as prof:
        for _ in range(steps):
            prof.step()
    traces = [json.loads(p.read_text("utf-8"))["traceEvents"]
              for p in (tmp_path / "log").glob("w.*.pt.trace.json")]
    whole = sorted(e["name"] for t in traces for e in t)
    assert whole == sorted(f"ProfilerStep#{i}" for i in range(steps) if i % 4 > 1)


# --- other modules
# ---------------------------------------------------------------------------------------------------

def test_spawn_starts_ranks_that_find_each_other(torch):
    import torch.multiprocessing as mp
    dist, seen = torch.distributed, []

    def worker(rank, size, word):
        dist.init_process_group("gloo", rank=rank, world_size=size)
        x = torch.tensor([rank + 1.0])
        dist.all_reduce(x)
        seen.append((rank, dist.get_rank(), dist.get_world_size(), x.item(), word))
        dist.destroy_process_group()

    assert mp.spawn(worker, args=(3, "w"), nprocs=3, join=True) is None
    assert sorted(seen) == [(r, r, 3, 6.0, "w") for r in range(3)]
    with pytest.raises(ArgumentError, match="(?s)join=True.*launch"):
        mp.spawn(worker, (1, "w"), join=False)
    assert mp.get_context("spawn") and mp.cpu_count() > 0 and mp.Queue


def test_nothing_is_downloaded(torch):
    for call in (lambda: torch.hub.load("pytorch/vision", "resnet18", pretrained=True),
                 lambda: torch.hub.load_state_dict_from_url("a://b", progress=True),
                 lambda: torch.hub.list("a/b"),
                 lambda: torch.hub.download_url_to_file("a://b", "c"), lambda: torch.hub.help("a/b", "c")):
        with pytest.raises(ArgumentError,
                           match="(?s)hub.*nothing from a network.*fix: .*yourself.*flow.load"):
            call()
    torch.hub.set_dir("there")
    assert torch.hub.get_dir() == "there"


def test_hub_offers_its_own_names_alone(torch):
    with pytest.raises(AttributeError) as e:
        torch.hub.no_such_name  # noqa: B018
    assert "load_state_dict_from_url" in e.value.expected and "NAMED" not in e.value.expected


def test_random_is_the_default_generator(torch):
    torch.random.manual_seed(3)
    state, a = torch.random.get_rng_state(), torch.rand(2)
    with torch.random.fork_rng():
        torch.rand(5)
    b = torch.rand(2)
    torch.random.set_rng_state(state)
    assert torch.random.initial_seed() == 3
    assert torch.equal(torch.rand(2), a) and torch.equal(torch.rand(2), b)


def test_kinds_of_tensors_are_classes(torch):
    for name, kind in (("FloatTensor", "float32"), ("LongTensor", "int64"), ("BoolTensor", "bool")):
        cls = getattr(torch, name)
        x = cls([1, 0])
        assert isinstance(x, cls) and isinstance(x, torch.Tensor) and x.dtype is getattr(torch, kind)
        assert (cls(2, 3).shape == (2, 3) and torch.ones(2).type(cls).dtype is x.dtype
                and not isinstance([1], cls))
        assert [isinstance(x, getattr(torch, n)) for n in ("FloatTensor", "LongTensor",
                                                           "BoolTensor")].count(True) == 1
    assert torch.typename(torch.ones(1)) == torch.ones(1).type() and torch.typename(3) == "int"


def test_defaults_that_may_be_set(torch):
    try:
        torch.set_default_tensor_type(torch.DoubleTensor)
        assert torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(1).dtype is torch.float32
    torch.set_default_device("cpu")
    with torch.device("cpu") as d:
        assert torch.ones(1).device == d
    assert torch.get_default_device() == torch.device("cpu")
    for call in (lambda: torch.set_default_tensor_type(torch.LongTensor),
                 lambda: torch.set_default_device("cuda"), torch.device("cuda").__enter__,
                 lambda: torch.set_default_tensor_type("torch.cuda.FloatTensor")):
        with pytest.raises(flow.errors.FlowError):
            call()


def test_disabled_features_are_accepted(torch):
    from torch.cpu.amp import autocast
    backends = torch.backends
    backends.cuda.matmul.allow_tf32 = backends.cudnn.benchmark = backends.mkldnn.enabled = False
    backends.cuda.enable_flash_sdp(True)
    backends.cuda.enable_mem_efficient_sdp(False)
    assert not backends.mkl.is_available() and not backends.openmp.is_available() and backends.cuda.is_built()
    assert flow.backends.cuda.matmul.allow_tf32 is False
    with autocast(enabled=False), torch.autograd.profiler.profile(enabled=False), backends.cudnn.flags(
            enabled=False):
        f = torch.compiler.disable(lambda x: x + 1)
    assert f(1) == 2 and not torch.compiler.is_compiling() and "flowedu" in torch.__config__.show()
    model = torch.nn.Linear(2, 2)
    assert torch.compile(model, disable=True) is model and torch.jit.script(model) is model


def test_stacked_datasets(torch):
    from torch.utils.data import DataLoader, StackDataset
    a, b = [torch.tensor(i) for i in range(4)], [10, 11, 12, 13]
    x, y = next(iter(DataLoader(StackDataset(a, b), batch_size=3)))
    assert x.tolist() == [0, 1, 2] and y.tolist() == [10, 11, 12]
    assert StackDataset(u=a, v=b)[2] == {"u": a[2], "v": 12} and len(StackDataset(a)) == 4
    for call in (lambda: StackDataset(), lambda: StackDataset(a, v=b), lambda: StackDataset(a, [1])):
        with pytest.raises(ArgumentError, match="StackDataset"):
            call()


@pytest.mark.torch
def test_special_functions_are_pytorchs():
    theirs, ours = pytest.importorskip("torch"), importlib.import_module("flowedu.mock.insides.torch_special")
    x = np.linspace(0.1, 0.9, 5)
    names = [n for n in vars(ours) if not n.startswith("_")]
    assert len(names) > 12
    for name in names:
        more = {"logsumexp": ((0,), {}), "softmax": ((0,), {}), "log_softmax": ((0,), {})}.get(name, ((), {}))
        args = [(lib.tensor(x), *([lib.tensor(x)] if name == "xlogy" else []), *more[0])
                for lib in (flow, theirs)]
        np.testing.assert_allclose(getattr(ours, name)(*args[0]).numpy(),
                                   getattr(theirs.special, name)(*args[1]).numpy(), rtol=1e-6, atol=1e-9)


def test_names_of_weights():
    """As in torchvision, each model has its own weights name, for the file of that model and its image
    preprocessing.
    """
    with mock.enable("torch"):
        from torchvision import models
        from torchvision.models.resnet import ResNet18_Weights
        assert (models.ResNet18_Weights is ResNet18_Weights
                and ResNet18_Weights("IMAGENET1K_V1") is ResNet18_Weights.DEFAULT)
        named = [n for n in dir(models) if n.endswith("_Weights") and n[0] != "_"]
        assert len(named) == 15 and models.ResNet50_Weights.DEFAULT is models.ResNet50_Weights.IMAGENET1K_V2
        for name in named:
            model = getattr(models, name.removesuffix("_Weights").lower())
            with pytest.raises(RuntimeError, match=rf"{model.__name__}\.safetensors"):
                model(weights=getattr(models, name).DEFAULT, width_mult=0.0625)
        x = ResNet18_Weights.DEFAULT.transforms()(Image.fromarray(np.full((300, 260, 3), 51, np.uint8)))
        assert x.shape == (3, 224, 224)
        wanted = (0.2 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225]
        np.testing.assert_allclose(x[:, 5, 7].numpy(), wanted, 1e-5)


def test_kinds_of_tensors_of_the_gpu(torch):
    """They also exist on a machine without a GPU, because programs choose between them and the CPU's
    types.
    """
    kinds = [n for n in torch.cuda.__all__ if n.endswith("Tensor") and n != "Tensor"]
    assert len(kinds) == 10 and not torch.cuda._initialized
    for name in kinds:
        kind = getattr(torch.cuda, name)
        assert kind.dtype is getattr(torch, name).dtype and not isinstance(torch.ones(2).to(kind.dtype), kind)
        if torch.cuda.is_available():
            assert isinstance(kind([1, 0]), kind) and not isinstance(kind([1, 0]), getattr(torch, name))
        else:
            with pytest.raises(RuntimeError, match="no GPU"):
                kind([1, 0])
    with pytest.raises(ArgumentError, match="no default of this kind"):
        torch.set_default_tensor_type(torch.cuda.FloatTensor)


def test_names_of_older_programs(torch):
    a, b = torch.rand(3, 4), torch.rand(4, 2)
    assert (torch.spmm(a, b) == a @ b).all()
    from torch.utils.checkpoint import get_device_states, set_device_states
    devices, states = get_device_states(a, "no tensor")
    assert (devices, states) == ([], []) and set_device_states(devices, states) is None
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
    flat = _flatten_dense_tensors([a, b])
    assert flat.shape == (20,) and [(x == y).all().item() for x, y in zip(_unflatten_dense_tensors(flat,
                                                                                                   [a, b]),
                                                                          [a, b])] \
        == [True, True]
    assert torch.asarray(0.5).shape == () and torch.asarray([1, 2], dtype=torch.float64).dtype is flow.float64
    assert torch.asarray(a) is a and torch.asarray(a, copy=True) is not a
    assert torch.asarray([1.0], requires_grad=True).requires_grad


# --- small functions of large programs
# -------------------------------------------------------------------------------

def test_in_place_methods_are_also_functions(torch):
    """Each calls the method of its name and returns the tensor itself."""
    from flowedu.mock.insides import torch_in_place
    more = {"addmv_": lambda x: (torch.ones(3, 2), torch.ones(2)), "clamp_": lambda x: (0.3, 0.6),
            "clip_": lambda x: (0.3,), "clamp_max_": lambda x: (0.6,), "clamp_min_": lambda x: (0.3,),
            "fill_": lambda x: (2.0,),
            "index_put_": lambda x: ((torch.tensor([1]),), torch.tensor(5.0)),
            "ldexp_": lambda x: (torch.ones(3),), "xlogy_": lambda x: (x + 1,)}
    for name in torch_in_place.NAMES:
        x = torch.tensor([0.2, 0.5, 0.8]) + (1.0 if name == "acosh_" else 0.0)
        given = more.get(name, lambda x: ())(x)
        want = getattr(x.clone(), name)(*given)
        assert getattr(torch, name)(x, *given) is x
        np.testing.assert_array_equal(x.numpy(), want.numpy())
        with pytest.raises(FlowError, match=name):
            getattr(torch, name)(0.5)


def test_a_script_module_runs_unchanged(torch):
    class Twice(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return x * 2

    assert isinstance(Twice(), torch.nn.Module) and Twice()(torch.ones(2)).tolist() == [2, 2]
    assert not isinstance(torch.jit.script(torch.nn.Linear(1, 1)), torch.jit.ScriptModule)


def test_a_file_name_contains_the_hash(torch):
    assert torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"
    assert torch.hub.HASH_REGEX.search("weights.pth") is None


def test_communication_hooks_can_be_imported(torch):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.distributed.algorithms.join import Join
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    for use in (lambda: model.register_comm_hook(None, default_hooks.fp16_compress_hook),
                lambda: model.register_comm_hook(None, print), lambda: powerSGD_hook.PowerSGDState(None),
                lambda: default_hooks.bf16_compress_wrapper(print)):
        with pytest.raises(UnsupportedError, match="(?s)sends gradients as they are.*expected:.*fix:"):
            use()
    with Join([model], throw_on_early_termination=True):
        model(torch.ones(1, 1)).sum().backward()
    for wrong in ([], [model, model], [model.module]):
        with pytest.raises(UnsupportedError, match="(?s)Join.*expected.*fix"):
            Join(wrong)
