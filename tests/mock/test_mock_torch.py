"""Functions with other arguments or of another kind in PyTorch than in flowedu: load, save, onnx.export, and
DistributedDataParallel. Under oneflow's name, they are OneFlow's.
"""
import importlib
import inspect
import io
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import flowedu as flow
from flowedu import mock, nn
from flowedu.errors import CallError, FlowError, UnsupportedError

# From PyTorch's documentation: the names before the "*" in order, and the keyword-only names.
CALLS = {
    "load": ("f, map_location, pickle_module", "weights_only, mmap"),
    "save": ("obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization", ""),
    "onnx.export": ("model, args, f", "kwargs, input_names, output_names, opset_version, dynamic_axes, "
                    "dynamic_shapes"),
    "nn.parallel.DistributedDataParallel": (
        "module, device_ids, output_device, dim, broadcast_buffers, init_sync, process_group, bucket_cap_mb, "
        "find_unused_parameters, check_reduction, gradient_as_bucket_view, static_graph", ""),
}


def get_by_path(name, path):
    module, _, last = f"{name}.{path}".rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.fixture
def torch():
    with mock.enable("torch"):
        yield importlib.import_module("torch")


@pytest.mark.parametrize("path", CALLS)
def test_arguments_are_pytorchs_under_torch_and_flowedus_under_oneflow(path):
    with mock.enable():
        there, own = get_by_path("torch", path), get_by_path("flowedu", path)
        assert there is not own and get_by_path("oneflow", path) is own
        places, keywords = ([n for n in text.split(", ") if n] for text in CALLS[path])
        parameters = inspect.signature(there).parameters
        assert [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD][:len(places)] == places
        assert all(parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in keywords)
        with pytest.raises(CallError):
            there(no_such_thing=1)


# --- checkpoints
# -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [
    {"weights_only": True}, {"weights_only": False}, {"map_location": "cpu", "weights_only": True},
    {"mmap": True},
    {"map_location": flow.device("cpu")}, {"map_location": {"cuda:0": "cpu"}},
    {"map_location": {"cpu": "cpu"}},
    {"map_location": lambda storage, location: storage}, {"pickle_module": None, "encoding": "latin1"}],
                         ids=" ".join)
def test_a_checkpoint_round_trips(torch, tmp_path, options):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.5}
    for _ in range(2):  # the second save replaces the first
        torch.save(saved, tmp_path / "last.pt", _use_new_zipfile_serialization=False)
    got = torch.load(tmp_path / "last.pt", **options)
    assert got["epoch"] == 3 and got["loss"] == 0.5
    other = nn.Linear(3, 2)
    other.load_state_dict(got["model"])
    assert all((a == b).all() for a, b in zip(other.state_dict().values(), model.state_dict().values()))
    torch.optim.AdamW(other.parameters()).load_state_dict(got["optimizer"])


def test_the_second_argument_of_load_is_map_location(torch, tmp_path):
    torch.save({"x": torch.ones(2)}, tmp_path / "x.pt")
    for place in ("cpu", torch.device("cpu")):
        x = torch.load(tmp_path / "x.pt", place)["x"]
        assert x.device == torch.device("cpu") and x.is_local


# --- DistributedDataParallel
# -----------------------------------------------------------------------------------------

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x, scale=1.0):
        return self.last(self.norm(self.first(x)).relu()) * scale


def test_data_parallel_classes_wrap_a_module(torch):
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.nn.parallel.distributed import DistributedDataParallel

    assert DDP is DistributedDataParallel is torch.nn.parallel.DistributedDataParallel

    class Mine(DDP):
        pass

    net = Net().eval()
    for kind in (DDP, Mine):
        m = kind(net, device_ids=[0], output_device=0, find_unused_parameters=True,
                 gradient_as_bucket_view=True, static_graph=True, bucket_cap_mb=25, broadcast_buffers=False)
        assert (isinstance(m, DDP) and isinstance(m, torch.nn.Module) and not isinstance(net, DDP)
                and m.module is net)
        x = torch.randn(2, 3)
        assert torch.equal(m(x, scale=2.0), net(x) * 2.0)
        assert list(m.state_dict()) == ["module." + n for n in net.state_dict()]
        assert [n for n, _ in m.named_parameters()] == ["module." + n for n, _ in net.named_parameters()]
        Net().load_state_dict(m.module.state_dict())
        Net().load_state_dict(OrderedDict((k.replace("module.", ""), v) for k, v in m.state_dict().items()))
        with m.no_sync():
            m(x).sum().backward()
        m.train()
        assert net.training and m.find_unused_parameters
        m.eval()


@pytest.mark.parametrize("options", [{"process_group": object()}, {"device_mesh": 1}, {"device_ids": [0, 1]},
                                     {"module": 3}], ids=" ".join)
def test_unsupported_options_are_refused(torch, options):
    with pytest.raises(FlowError, match="(?s)DistributedDataParallel.*expected.*fix"):
        torch.nn.parallel.DistributedDataParallel(**{"module": Net(), **options})


def rank(ddp, k: int, micro: int, sync: str):
    """Return the gradients of a rank after `micro` backward passes on its own batches.

    sync: one letter per pass, "y" if the pass synchronizes gradients.
    """
    r = flow.env.get_rank() if k > 1 else 0
    flow.manual_seed(r)                                                          # rank 0's values are used
    m = ddp(Net())
    for i in range(micro):
        x = flow.tensor(np.random.default_rng(10 * r + i).normal(size=(4, 3)).astype("f4"))
        if sync[i] == "n":
            with m.no_sync():
                m(x).sin().sum().backward()
        else:
            m(x).sin().sum().backward()
    return [p.grad.numpy().copy() for p in m.parameters()]


@pytest.mark.parametrize("sync", ["y", "n", "ny", "nny", "nyn"])
def test_gradients_are_averaged_where_they_are_synchronized(torch, sync):
    """Each rank has the sum of its own gradients until the next backward outside of no_sync, which averages
    the accumulated ones.
    """
    k, ddp = 2, torch.nn.parallel.DistributedDataParallel
    got = flow.distributed.spawn(lambda: rank(ddp, k, len(sync), sync), k)
    whole = sync.rfind("y") + 1  # the number of averaged gradients
    alone = [own_gradients(r, len(sync)) for r in range(k)]
    for r in range(k):
        for p, mine in enumerate(got[r]):
            mean = sum(alone[s][i][p] for s in range(k) for i in range(whole)) / k
            want = mean + sum(alone[r][i][p] for i in range(whole, len(sync)))
            np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)


def own_gradients(r: int, micro: int):
    """Return [gradients of micro-batch i of rank r alone]."""
    flow.manual_seed(0)
    m, out = Net(), []
    for i in range(micro):
        m.zero_grad()
        m(flow.tensor(np.random.default_rng(10 * r
                                            + i).normal(size=(4, 3)).astype("f4"))).sin().sum().backward()
        out.append([p.grad.numpy().copy() for p in m.parameters()])
    return out


def test_data_parallel_is_a_module_around_the_module(torch):
    net, x = Net().eval(), torch.randn(2, 3)
    m = torch.nn.DataParallel(net, device_ids=[0, 1])
    assert m.module is net and torch.equal(m(x, scale=2.0), net(x, scale=2.0))
    assert torch.nn.parallel.DataParallel is torch.nn.DataParallel and isinstance(m, torch.nn.DataParallel)
    assert list(m.state_dict()) == ["module." + n for n in net.state_dict()]
    with pytest.raises(FlowError, match="(?s)DataParallel.*not a module"):
        torch.nn.DataParallel(3)


# from PyTorch's documentation: programs use these in isinstance and as base classes
CLASSES = {
    "": "Tensor Generator device dtype Size autocast no_grad enable_grad set_grad_enabled inference_mode "
    "finfo iinfo",
    "nn": "Module Parameter Sequential ModuleList ModuleDict ParameterList ParameterDict Linear Bilinear "
    "Identity Conv1d Conv2d Conv3d ConvTranspose2d BatchNorm1d BatchNorm2d SyncBatchNorm LayerNorm GroupNorm "
    "RMSNorm Embedding LSTM GRU RNN LSTMCell GRUCell Transformer TransformerEncoder TransformerEncoderLayer "
          "MultiheadAttention Dropout ReLU GELU SiLU Softmax Sigmoid Tanh LeakyReLU Flatten MaxPool2d "
    "AvgPool2d AdaptiveAvgPool2d Upsample PixelShuffle CrossEntropyLoss NLLLoss MSELoss L1Loss SmoothL1Loss "
    "HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss CTCLoss CosineSimilarity DataParallel",
    "nn.parallel": "DistributedDataParallel DataParallel",
    "nn.utils.rnn": "PackedSequence",
    "optim": "Optimizer SGD Adam AdamW RMSprop Adagrad Adadelta",
    "optim.lr_scheduler": "LRScheduler _LRScheduler StepLR MultiStepLR OneCycleLR CyclicLR ReduceLROnPlateau "
    "LambdaLR SequentialLR ChainedScheduler CosineAnnealingLR CosineAnnealingWarmRestarts",
    "utils.data": "Dataset IterableDataset TensorDataset ConcatDataset Subset DataLoader Sampler "
    "RandomSampler BatchSampler SequentialSampler WeightedRandomSampler SubsetRandomSampler "
    "DistributedSampler", "utils.tensorboard": "SummaryWriter",
    "autograd": "Function Variable set_detect_anomaly detect_anomaly",
    "amp": "autocast GradScaler",
    "cuda.amp": "autocast GradScaler",
    "cuda": "Stream Event CUDAGraph",
    "jit": "ScriptModule",
    "onnx": "TrainingMode",
    "distributed": "ReduceOp",
}


@pytest.mark.parametrize("path", CLASSES)
def test_classes_of_pytorch_are_classes(torch, path):
    module = importlib.import_module(f"torch.{path}" if path else "torch")
    other = [n for n in CLASSES[path].split() if not isinstance(getattr(module, n), type)]
    assert not other


# --- schedules
# -------------------------------------------------------------------------------------------------------

def rates(make, steps=14, lr=0.5):
    optimizer = flow.optim.SGD([flow.tensor([1.0], requires_grad=True)], lr=lr)
    scheduler, seen = make(optimizer), []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == seen[-1:] and scheduler.last_epoch == len(seen) - 1
        scheduler.step()
    return np.array(seen)


def half_cosine(n, steps):
    return (1 + np.cos(np.pi * n / steps)) / 2


def test_a_warm_up_before_a_schedule_that_begins_after_it(torch):
    """PyTorch's recipe: the second schedule counts from the milestone."""
    S, n = torch.optim.lr_scheduler, np.arange(14)
    got = rates(lambda o: S.SequentialLR(o, schedulers=[S.LinearLR(o, start_factor=0.1, total_iters=4),
                                                        S.CosineAnnealingLR(o, T_max=10)], milestones=[4]))
    np.testing.assert_allclose(got, 0.5 * np.where(n < 4, 0.1 + 0.9 * n / 4, half_cosine(n - 4, 10)),
                               rtol=1e-6)
    got = rates(lambda o: S.PolynomialLR(o, total_iters=8, power=2.0))
    np.testing.assert_allclose(got, 0.5 * (1 - np.minimum(n, 8) / 8) ** 2, atol=1e-12)


# from PyTorch's documentation: the arguments before last_epoch
SCHEDULES = {"ConstantLR": (0.5, 3), "CosineAnnealingLR": (5, 0.1),
             "CosineAnnealingWarmRestarts": (3, 2, 0.1),
             "ExponentialLR": (0.9,), "LambdaLR": (lambda n: 0.9 ** n,), "LinearLR": (0.5, 1.0, 3),
             "MultiStepLR": ([2], 0.5), "MultiplicativeLR": (lambda n: 0.9,), "StepLR": (2, 0.5),
             "PolynomialLR": (5, 2.0), "OneCycleLR": (0.1, 20), "CyclicLR": (0.1, 0.2, 5)}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_last_epoch_resumes_a_schedule(torch, kind):
    S = torch.optim.lr_scheduler

    def make(o, **more):
        return getattr(S, kind)(o, *SCHEDULES[kind], **more)

    rates(lambda o: make(o, last_epoch=-1))
    optimizer = flow.optim.SGD([flow.tensor([1.0], requires_grad=True)], lr=0.5)
    make(optimizer)                                                  # sets initial_lr in the groups
    scheduler = make(optimizer, last_epoch=5)
    assert scheduler.last_epoch == 6  # the rates: tests/optim/test_mock_schedules.py
    assert isinstance(scheduler, S.LRScheduler) and isinstance(scheduler, S._LRScheduler)
    assert (isinstance(scheduler, getattr(S, kind)) and isinstance(scheduler,
                                                                   flow.optim.lr_scheduler.LRScheduler))
    assert type(scheduler).__name__ == kind and repr(scheduler).startswith(kind)


def test_a_custom_schedule(torch):
    class Warm(torch.optim.lr_scheduler._LRScheduler):
        def __init__(self, optimizer, warmup, last_epoch=-1):
            self.warmup = warmup
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [base * min(1.0, (self.last_epoch + 1) / self.warmup) for base in self.base_lrs]

    class Half(torch.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [g["lr"] * (0.5 if self.last_epoch else 1.0) for g in self.optimizer.param_groups]

    n = np.arange(14)
    np.testing.assert_allclose(rates(lambda o: Warm(o, 5)), 0.5 * np.minimum(1, (n + 1) / 5))
    np.testing.assert_allclose(rates(Half), 0.5 * 0.5 ** n)
    assert isinstance(Warm(flow.optim.SGD([flow.zeros(1, requires_grad=True)]), 5),
                      torch.optim.lr_scheduler.LRScheduler)
    assert not isinstance(3, torch.optim.lr_scheduler.LRScheduler)
    optimizer = flow.optim.SGD([flow.zeros(1, requires_grad=True)])
    assert not isinstance(torch.optim.lr_scheduler.StepLR(optimizer, 3), Warm)


# --- onnx
# ------------------------------------------------------------------------------------------------------------

class Two(nn.Module):
    """Model with two inputs, two results, and different values in training mode."""

    def __init__(self):
        super().__init__()
        self.line, self.drop, self.norm = nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)

    def forward(self, x, y=None):
        h = self.norm(self.drop(self.line(x)))
        return h, h.sum(1) if y is None else h * y


@pytest.mark.peer
@pytest.mark.parametrize("how", ["one", "tuple", "dict", "kwargs"])
@pytest.mark.parametrize("training", [False, True])
def test_exported_models_match_the_model(torch, tmp_path, how, training):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, x, y = Two().train(training), torch.randn(2, 3), torch.randn(2, 4)
    model.drop.eval()                                                           # modes are restored
    modes = [m.training for m in model.modules()]
    args, more = {"one": (x, {}), "tuple": ((x, y), {}), "dict": ((x, {"y": y}), {}),
                  "kwargs": ((x,), {"kwargs": {"y": y}})}[how]
    names = ["x"] if how == "one" else ["x", "y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, args, tmp_path / "m.onnx", input_names=names, output_names=["a", "b"],
                          opset_version=17,
                          export_params=True, do_constant_folding=True, verbose=False, dynamo=False,
                          dynamic_axes=None, training=torch.onnx.TrainingMode.EVAL, **more)
    assert [m.training for m in model.modules()] == modes
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    got = session.run(["a", "b"], {n: v.numpy() for n, v in zip(names, (x, y))})
    for a, b in zip(got, model.eval()(x, None if how == "one" else y)):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.peer
@pytest.mark.parametrize("options", [
    {"dynamic_shapes": {"x": {0: "batch"}}}, {"export_params": False}, {"training": 2},
    {"custom_opsets": {"mine": 1}}],
    ids=str)
def test_unsupported_export_options_report_a_working_fix(torch, tmp_path, options):
    pytest.importorskip("onnx")
    model, name = Two().eval(), next(iter(options))
    with pytest.raises(UnsupportedError, match=f"(?s){name} cannot be followed.*fix: *leave {name} out"):
        torch.onnx.export(model, torch.randn(2, 3), tmp_path / "m.onnx", **options)
    assert not (tmp_path / "m.onnx").exists()
    for size in (2, 5):
        torch.onnx.export(model, torch.randn(size, 3), tmp_path / f"{size}.onnx")
        assert (tmp_path / f"{size}.onnx").is_file()


class Tokens(nn.Module):
    """Embeddings, positions, attention, and an LSTM: shapes and the initial state depend on the batch
    size.
    """

    def __init__(self):
        super().__init__()
        self.word, self.place, self.last = nn.Embedding(11, 8), nn.Embedding(6, 8), nn.Linear(4, 2)
        self.attention, self.lstm = (nn.MultiheadAttention(8, 2, batch_first=True),
                                     nn.LSTM(8, 4, batch_first=True))

    def forward(self, i, scale):
        b, t = i.shape
        x = self.word(i) + self.place(flow.arange(t))
        return self.last(self.lstm(x + self.attention(x, x, x)[0])[0].reshape(b * t, 4)).view(b, -1) * scale


def words(*size):
    return flow.tensor(np.random.default_rng(sum(size)).integers(0, 11, size))


BATCH = {"x": {0: "batch"}, "y": {0: "batch"}}
# model, function that creates inputs of a size, (first size, other sizes), axes
FREE = {
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.ReLU()),
            lambda n: (flow.randn(n, 3, 4),), [(1,), (4,), (2,), (9,)], BATCH),
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
                                           nn.MaxPool2d(2)),
                     lambda n, h, w: (flow.randn(n, 3, h, w),), [(2, 8, 8), (1, 8, 6), (3, 4, 12)],
                     {"x": [0, 2, 3], "y": [0, 2, 3]}),
    "mobilenet": (lambda: flow.vision.models.mobilenet_v2(num_classes=3, width_mult=0.25),
                  lambda n: (flow.randn(n, 3, 32, 32),), [(2,), (1,), (3,)], BATCH),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
                    lambda n: (flow.randn(n, 5, 8),), [(3,), (1,), (6,)], BATCH),
    "tokens": (Tokens, lambda n: (words(n, 6), flow.randn(n, 1)), [(4,), (1,), (7,)],
               {"x": {0: "batch"}, "scale": {0: "batch"}, "y": {0: "batch"}}),
}


@pytest.mark.peer
@pytest.mark.parametrize("name", FREE)
def test_dynamic_axes_accept_other_sizes(torch, tmp_path, name):
    """The file accepts other sizes for the axes in dynamic_axes and computes the model's results with
    them.
    """
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    make, inputs, (first, *others), axes = FREE[name]
    model, names = make().eval(), [n for n in axes if n != "y"]
    torch.onnx.export(model, inputs(*first), tmp_path / "m.onnx", input_names=names, output_names=["y"],
                      dynamic_axes=axes)
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for n, x in zip(names, session.get_inputs()):
        assert {i for i, size in enumerate(x.shape) if isinstance(size, str)} == {*axes[n]}
    assert session.get_outputs()[0].shape[0] == ("batch" if axes is not FREE["convolutions"][3]
                                                 else "y_dynamic_axes_0")
    for size in (first, *others):
        xs = inputs(*size)
        got, = session.run(None, {n: x.numpy() for n, x in zip(names, xs)})
        np.testing.assert_allclose(got, model(*xs).detach().numpy(), rtol=1e-4, atol=1e-4)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(0)


@pytest.mark.peer
@pytest.mark.parametrize(("model", "axes", "said"), [
    (Mean, {"x": {0: "batch"}}, "(?s)its numbers depend on the size.*mul.*fix: *leave dynamic_axes out"),
    (lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1)), {"x": {1: "h"}}, "(?s)depend on the size.*fix"),
    (nn.ReLU, {"z": {0: "batch"}}, "(?s)'z', which is no input and no output.*input_names"),
    (nn.ReLU, {"x": {3: "batch"}}, "(?s)a missing axis.*0 to 2")])
def test_unsupported_dynamic_axes_are_reported(torch, tmp_path, model, axes, said):
    pytest.importorskip("onnx")
    call = dict(input_names=["x"], output_names=["y"])
    with pytest.raises(FlowError, match=said):
        torch.onnx.export(model(), torch.randn(3, 4, 5), tmp_path / "m.onnx", dynamic_axes=axes, **call)
    assert not (tmp_path / "m.onnx").exists()
    torch.onnx.export(model(), torch.randn(3, 4, 5), tmp_path / "m.onnx", **call)  # the suggested call
    assert (tmp_path / "m.onnx").is_file()


@pytest.mark.peer
@pytest.mark.parametrize("axes", [None, {"x": {0: "batch"}}])
def test_export_to_an_open_file_equals_export_to_a_path(torch, tmp_path, axes):
    pytest.importorskip("onnx")
    model, x = nn.Linear(3, 2), torch.ones(2, 3)
    for options in ({}, {"dynamo": False}):
        f = io.BytesIO()
        torch.onnx.export(model, x, f, input_names=["x"], dynamic_axes=axes, **options)
        torch.onnx.export(model, x, tmp_path / "m.onnx", input_names=["x"], dynamic_axes=axes, **options)
        assert len(f.getvalue()) > 100
        import onnx
        a, b = onnx.load_from_string(f.getvalue()), onnx.load(tmp_path / "m.onnx")
        assert [n.op_type for n in a.graph.node] == [n.op_type for n in b.graph.node]
        assert a.graph.input == b.graph.input


def test_wrong_calls_of_export(torch, tmp_path):
    for call in (lambda: torch.onnx.export(3, torch.ones(1), "m.onnx"),
                 lambda: torch.onnx.export(Two(), torch.ones(2, 3)),
                 lambda: torch.onnx.export(Two(), torch.ones(2, 3), tmp_path / "m.onnx", input_name=["x"])):
        with pytest.raises(CallError, match="(?s)onnx.export.*fix"):
            call()


@pytest.mark.peer
def test_an_unsupported_opset_is_reported(torch, tmp_path):
    pytest.importorskip("onnx")
    with pytest.warns(UserWarning, match="written in opset 18, not 3") as told:
        torch.onnx.export(Two(), torch.ones(2, 3), tmp_path / "m.onnx", opset_version=3)
    assert told[0].filename == __file__


# --- torchvision
# -----------------------------------------------------------------------------------------------------

def test_transforms_v2_matches_transforms(torch):
    from PIL import Image
    from torchvision.transforms import v2
    a = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)
    T = flow.vision.transforms
    old = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.2,))])
    new = v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(p=0.0), v2.ToDtype(torch.float32, scale=True),
                      v2.Normalize(mean=(0.5,), std=(0.2,))])
    for picture in (a, Image.fromarray(a)):
        assert torch.equal(new(picture), old(picture))
        x = v2.ToImage()(picture)
        assert x.dtype is torch.uint8 and (x.numpy() == a.transpose(2, 0, 1)).all() and v2.ToImage()(x) is x
        assert (v2.ToDtype(torch.float32)(x).numpy() == a.transpose(2, 0,
                                                                    1)).all() and v2.ToDtype(torch.float32)(
                                                                        a) is a
    assert v2.Resize is T.Resize and v2.functional.hflip(x).shape == x.shape


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsupported_dtypes_may_be_dictionary_keys(torch, name):
    """Libraries that read files build such tables on import; using one of these dtypes raises an error with a
    replacement.
    """
    kind = getattr(torch, name)
    assert {kind: 2, torch.int32: 4}[kind] == 2 and kind not in (torch.int32, torch.uint8, torch.int64)
    assert torch.zeros(1, dtype=torch.int64).dtype != kind
    for use in (lambda: torch.zeros(2, dtype=kind), lambda: torch.ones(2).to(kind),
                lambda: torch.tensor([1], dtype=kind)):
        with pytest.raises(FlowError) as caught:
            use()
        assert "flow.int32 holds" in caught.value.fix or "flow.int64 holds" in caught.value.fix


def test_numbers_of_16_bits(torch):
    """The names that audio programs use."""
    x = torch.ShortTensor([-300, 2 ** 15 - 1])
    assert torch.int16 is torch.short is x.dtype is flow.int16 and isinstance(x, torch.ShortTensor)
    assert (x + 1).tolist() == [-299, -2 ** 15] and (x.float() / 2 ** 15).to(torch.int16).tolist() == [0, 0]
    assert torch.tensor([1.7, -2.9]).short().tolist() == [1, -2] and x.type() == "flowedu.ShortTensor"


def test_old_names_of_init_warn_and_fill(torch):
    from flowedu.mock.insides.torch_init import NAMES
    for name in NAMES:
        old, new = getattr(torch.nn.init, name), getattr(torch.nn.init, f"{name}_")
        more = {"constant": (0.5,), "sparse": (0.1,)}.get(name, ())
        shape = (4, 4, 3) if name == "dirac" else (4, 4)
        torch.manual_seed(3)
        with pytest.warns(FutureWarning, match=f"{name}_"):
            x = old(torch.zeros(shape), *more)
        torch.manual_seed(3)
        np.testing.assert_array_equal(x.numpy(), new(torch.zeros(shape), *more).numpy())
