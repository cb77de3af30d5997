"""Every network against its PyTorch counterpart with the same weights in float64: values, gradients, and
running statistics.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.models import GPT
from flowedu.nn import functional as F
from flowedu.vision import models

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
from . import twins  # noqa: E402

VGG_PLANS = {11: [8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"],
             16: [8, 8, "M", 16, 16, "M", 32, 32, 32, "M", 64, 64, 64, "M", 64, 64, 64, "M"]}
CASES = {
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=7, width_mult=0.25, dropout=0.0),
                     lambda: twins.MobileNetV2([8, 8, 8, 8, 16, 24, 40, 80, 1280], 7), (4, 3, 32, 32)),
    "resnet18": (lambda: models.resnet18(num_classes=5, width_mult=0.125),
                 lambda: twins.ResNet(False, (2, 2, 2, 2), 8, 5), (3, 3, 40, 33)),
    "resnet34": (lambda: models.resnet34(num_classes=5, width_mult=0.0625),
                 lambda: twins.ResNet(False, (3, 4, 6, 3), 4, 5), (3, 3, 33, 33)),
    "resnet50": (lambda: models.resnet50(num_classes=5, width_mult=0.0625),
                 lambda: twins.ResNet(True, (3, 4, 6, 3), 4, 5), (3, 3, 33, 33)),
    "vgg11": (lambda: models.vgg11(num_classes=5, width_mult=0.125, dropout=0.0),
              lambda: twins.VGG(VGG_PLANS[11], False, 512, 5), (2, 3, 32, 32)),
    "vgg16_bn": (lambda: models.vgg16_bn(num_classes=5, width_mult=0.125, dropout=0.0),
                 lambda: twins.VGG(VGG_PLANS[16], True, 512, 5), (4, 3, 64, 33)),
    "alexnet": (lambda: models.alexnet(num_classes=5, width_mult=0.125, dropout=0.0),
                lambda: twins.AlexNet(8, 24, 48, 32, 512, 5), (2, 3, 70, 63)),
    "lenet5": (models.lenet5, twins.LeNet5, (3, 1, 28, 28)),
    "neural_style_transfer": (lambda: models.neural_style_transfer.neural_style_transfer(width_mult=0.125),
                              lambda: twins.StyleNet(4, 8, 16), (1, 3, 24, 20)),
}


def pair(ours, theirs, seed=0):
    """Return (model, PyTorch's with the same weights) in float64; parameters that start at 0 or 1 are random
    as well.
    """
    flow.manual_seed(seed)
    model, twin = ours().double(), theirs().double()
    rng = np.random.default_rng(seed)
    state = {}
    for name, t in model.state_dict().items():
        a = t.detach().numpy().copy()
        if name.endswith(("bias", "weight")) and a.ndim == 1:
            a = a + rng.normal(0, 0.1, a.shape)
        state[name] = a
    model.load_state_dict({n: flow.tensor(a) for n, a in state.items()})
    twin.load_state_dict({n: torch.tensor(a) for n, a in state.items()})  # strict: the names are the same
    return model, twin


def assert_same_as_torch(got, want, what):
    got, want = got.detach().numpy(), want.detach().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9 + 1e-8 * np.abs(want).max(), err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_equal_pytorchs(name):
    ours, theirs, shape = CASES[name]
    model, twin = pair(ours, theirs)
    rng = np.random.default_rng(1)
    a = rng.random(shape) * (255 if "style" in name else 1)
    x, tx = flow.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    y, ty = model(x), twin(tx)
    weight = rng.normal(size=tuple(ty.shape))
    assert_same_as_torch(y, ty, "output while training")
    (y * flow.tensor(weight)).sum().backward()
    (ty * torch.tensor(weight)).sum().backward()
    assert_same_as_torch(x.grad, tx.grad, "gradient of the input")
    theirs_by_name = dict(twin.named_parameters())
    for n, p in model.named_parameters():
        assert_same_as_torch(p.grad, theirs_by_name[n].grad, f"gradient of {n}")
    buffers = dict(twin.named_buffers())
    for n, b in model.named_buffers():
        assert_same_as_torch(b, buffers[n], n)
    model.eval()
    twin.eval()
    with flow.no_grad(), torch.no_grad():
        assert_same_as_torch(model(x), twin(tx), "output when testing")


def test_training_has_the_same_losses():
    """Three steps of SGD with cross-entropy have PyTorch's losses. Norms over few values amplify rounding
    from step to step; here, each has 32 or more.
    """
    ours, theirs, _ = CASES["resnet18"]
    model, twin = pair(ours, theirs)
    rng = np.random.default_rng(0)
    a, y = rng.random((8, 3, 48, 48)), rng.integers(0, 5, 8)
    ours_opt = flow.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    theirs_opt = torch.optim.SGD(twin.parameters(), lr=0.001, momentum=0.9)
    for _ in range(3):
        loss = F.cross_entropy(model(flow.tensor(a)), flow.tensor(y))
        other = torch.nn.functional.cross_entropy(twin(torch.tensor(a)), torch.tensor(y))
        np.testing.assert_allclose(loss.item(), other.item(), rtol=1e-9)
        for optimizer, value in ((ours_opt, loss), (theirs_opt, other)):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()


@pytest.mark.parametrize("name", CASES)
def test_float32_results_are_near_pytorchs(name):
    """The usual dtype, in evaluation mode, because norms over a small training batch amplify every
    rounding.
    """
    ours, theirs, shape = CASES[name]
    model, twin = (m.float().eval() for m in pair(ours, theirs))
    a = np.random.default_rng(1).random(shape).astype(np.float32)
    with flow.no_grad(), torch.no_grad():
        got, want = model(flow.tensor(a)), twin(torch.tensor(a))
    assert got.dtype is flow.float32
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-3, atol=1e-4 * np.abs(want.numpy()).max())


def test_gpt_equals_the_pytorch_implementation():
    model, twin = pair(lambda: GPT(23, n_layer=2, n_head=3, d=12, block_size=9),
                       lambda: twins.GPT(23, 2, 3, 12, 9))
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in twin.parameters())
    rng = np.random.default_rng(0)
    for t in (9, 4, 1):
        idx, targets = rng.integers(0, 23, (2, t)), rng.integers(0, 23, (2, t))
        logits, loss = model(flow.tensor(idx), flow.tensor(targets))
        want = twin(torch.tensor(idx))
        assert_same_as_torch(logits, want, "logits")
        assert_same_as_torch(model(flow.tensor(idx)), want, "logits without targets")
        theirs = torch.nn.functional.cross_entropy(want.flatten(0, 1), torch.tensor(targets).flatten())
        assert_same_as_torch(loss, theirs, "loss")
        model.zero_grad()
        twin.zero_grad()
        loss.backward()
        theirs.backward()
        for n, p in model.named_parameters():
            assert_same_as_torch(p.grad, dict(twin.named_parameters())[n].grad, n)
