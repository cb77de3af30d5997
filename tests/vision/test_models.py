"""Parameter names and counts of the models, arguments of their functions, and training."""
import re

import numpy as np
import pytest

import flowedu as flow
from bounds import assert_learned, assert_mean, assert_std
from flowedu import nn
from flowedu.nn import functional as F
from flowedu.vision import datasets, models, transforms
from flowedu.vision.models.neural_style_transfer.stylenet import neural_style_transfer

# torchvision's (and flowvision's) counts for 1000 classes
COUNTS = {"mobilenet_v2": 3_504_872, "resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032,
          "resnet101": 44_549_160, "resnet152": 60_192_808,
          "alexnet": 61_100_840, "lenet5": 61_706}
TENSORS = {"mobilenet_v2": (158, 314), "resnet18": (62, 122), "resnet34": (110, 218), "resnet50": (161, 320),
           "resnet101": (314, 626), "resnet152": (467, 932),
           "alexnet": (16, 16)}


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture
def cheap_init(monkeypatch):
    """Skip the initialization of weights, because only their shapes matter."""
    from flowedu.nn import init
    for name in ("kaiming_normal_", "kaiming_uniform_", "normal_", "uniform_"):
        monkeypatch.setattr(init, name, lambda t, *args, **kwargs: t)


@pytest.mark.parametrize("name", COUNTS)
def test_models_have_the_published_number_of_parameters(name, cheap_init):
    model = getattr(models, name)()
    assert count(model) == COUNTS[name]
    if name in TENSORS:
        assert (len(list(model.parameters())), len(model.state_dict())) == TENSORS[name]


def vgg_count(depth, norm, width=1.0, classes=1000):
    """Compute the parameter count from the table of the paper."""
    n, i = 0, 3
    for stage in models.vgg.STAGES[depth]:
        for c in stage:
            c = round(c * width)
            n += 9 * i * c + c + 2 * c * norm
            i = c
    h = round(4096 * width)
    return n + (49 * i + 1) * h + (h + 1) * h + (h + 1) * classes


def test_counts_of_vgg(cheap_init):
    """The full size takes half a gigabyte, so the formula computes it, and smaller models confirm the
    formula.
    """
    assert [vgg_count(d, b) for d in (11, 13, 16, 19) for b in (0, 1)] == [
        132_863_336, 132_868_840, 133_047_848, 133_053_736, 138_357_544, 138_365_992, 143_667_240,
        143_678_248]
    for depth, norm in ((d, b) for d in (11, 13, 16, 19) for b in (0, 1)):
        model = getattr(models, f"vgg{depth}{'_bn' * norm}")(width_mult=0.125, num_classes=10)
        assert count(model) == vgg_count(depth, norm, 0.125, 10)
        assert len(list(model.parameters())) == 2 * depth + 2 * norm * (depth - 3)


def test_counts_of_the_style_network():
    model = neural_style_transfer()
    assert count(model) == 1_679_235 and model is not models.neural_style_transfer
    assert {"conv1.conv2d.weight", "in1.bias", "res5.conv2.conv2d.bias", "res1.in2.weight",
            "deconv3.conv2d.weight"} <= set(
                model.state_dict())
    assert [n for n, _ in model.named_children()] == [
        "conv1", "in1", "conv2", "in2", "conv3", "in3", "res1", "res2", "res3", "res4", "res5", "deconv1",
        "in4", "deconv2", "in5", "deconv3", "relu"]
    with pytest.raises(ValueError, match="sketch, candy, mosaic"):
        neural_style_transfer(style_model="cubist")


def test_mobilenet_v2_has_the_names_of_the_tutorial():
    model = models.mobilenet_v2()
    state = model.state_dict()
    shapes = {n: tuple(t.shape) for n, t in state.items()}
    want = {"features.0.0.weight": (32, 3, 3, 3), "features.1.conv.0.0.weight": (32, 1, 3, 3),
            "features.1.conv.1.weight": (16, 32, 1, 1), "features.1.conv.2.running_var": (16,),
            "features.2.conv.0.0.weight": (96, 16, 1, 1), "features.18.0.weight": (1280, 320, 1, 1),
            "classifier.1.weight": (1000, 1280), "classifier.1.bias": (1000,)}
    assert want.items() <= shapes.items()
    assert [n for n in state if n.startswith("features.0.")] == ["features.0.0.weight"] + [
        f"features.0.1.{n}" for n in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]
    assert [n for n, _ in model.named_children()] == ["features", "adaptive_avg_pool2d", "classifier"]
    assert model.last_channel == 1280 and len(model.features) == 19
    assert (isinstance(model.features[0], models.ConvBNActivation) and isinstance(model.features[0],
                                                                                  nn.Sequential))
    assert type(model.features[1]).__name__ == "InvertedResidual"
    assert (model._shallow_repr() == "MobileNetV2()"
            and model.features[0]._shallow_repr() == "ConvBNActivation()")
    assert (repr(
         model.features[0][0]) == "Conv2d(3, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
            "bias=False)")
    # The tutorial's misspelled line adds two parameters and changes nothing else.
    model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))
    assert len(model.state_dict()) == 316
    model.eval()
    with flow.no_grad():
        assert model(flow.zeros(2, 3, 32, 32)).shape == (2, 1000)


def test_initial_weights_follow_the_paper():
    flow.manual_seed(0)
    model = models.mobilenet_v2()
    w = model.features[18][0].weight.numpy()
    assert_std(w, np.sqrt(2 / 1280))
    assert_mean(w, 0, np.sqrt(2 / 1280))
    head = model.classifier[1]
    assert_std(head.weight.numpy(), 0.01)
    assert not head.bias.numpy().any()
    again = models.resnet18(zero_init_residual=True, width_mult=0.125)
    assert not again.layer2[0].bn2.weight.numpy().any() and again.layer2[0].bn1.weight.numpy().all()


@pytest.mark.parametrize("width, channels", [
    (1.0, (32, 16, 320, 1280)), (0.5, (16, 8, 160, 1280)), (0.25, (8, 8, 80, 1280)),
    (1.4, (48, 24, 448, 1792))])
def test_width_mult(width, channels, cheap_init):
    model = models.mobilenet_v2(width_mult=width, num_classes=3)
    f = model.features
    assert (f[0].out_channels, f[1].out_channels, f[17].out_channels, f[18].out_channels) == channels
    assert model.classifier[1].weight.shape == (3, channels[-1])


def test_channels_are_rounded_but_not_far_down():
    from flowedu.vision.models.mobilenet import make_divisible
    assert [make_divisible(c) for c in (1, 8, 11, 12, 17.7, 18, 24, 1792.0)] == [8, 8, 16, 16, 16, 24,
                                                                                 24, 1792]
    assert make_divisible(11, 1) == 11


def test_settings_of_mobilenet():
    small = models.MobileNetV2(num_classes=4, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2]])
    assert len(small.features) == 5 and small(flow.ones(2, 3, 16, 16)).shape == (2, 4)
    with pytest.raises(ValueError, match="non-empty or a 4-element list"):
        models.MobileNetV2(inverted_residual_setting=[[1, 2]])


def test_lenet5_for_both_sizes():
    assert models.lenet5()(flow.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert models.lenet5(in_channels=3, image_size=32,
                         num_classes=4)(flow.zeros(2, 3, 32, 32)).shape == (2, 4)


@pytest.mark.parametrize("name", [*COUNTS, *(f"vgg{d}{bn}" for d in (11, 13, 16, 19) for bn in ("", "_bn"))])
def test_pretrained_without_weights_names_the_expected_path(name, cheap_init):
    kwargs = {} if name == "lenet5" else {"width_mult": 0.125}
    with pytest.raises(RuntimeError, match=re.escape(f"{name}.safetensors")) as e:
        getattr(models, name)(pretrained=True, progress=True, **kwargs)
    assert "save_weights" in str(e.value) and "pretrained=False" in str(e.value)


def test_pretrained_style_without_weights():
    with pytest.raises(RuntimeError, match=r"neural_style_transfer_sketch\.safetensors"):
        neural_style_transfer(pretrained=True, progress=True)


def test_a_network_learns_the_generated_images():
    flow.manual_seed(0)
    ready = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
    d = datasets.SyntheticCIFAR10(transform=ready, size=320)
    x = flow.stack([d[i][0] for i in range(len(d))])
    y = flow.tensor(d.targets)
    model = models.resnet18(num_classes=10, width_mult=0.25)
    optimizer = flow.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(24):
        part = slice(step % 5 * 64, step % 5 * 64 + 64)
        loss = F.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert_learned(losses, 10)
