"""Networks for images. Parameter names are those of torchvision and flowvision, so their weights fit.

Every function takes num_classes, width_mult, and progress (ignored, because there is no progress bar). To
load weights, pass pretrained=True or, as in torchvision, weights= with any value except None.
"""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.vision.models import neural_style_transfer
from flowedu.vision.models.alexnet import AlexNet, LeNet5, alexnet, lenet5
from flowedu.vision.models.mobilenet import ConvBNActivation, InvertedResidual, MobileNetV2, mobilenet_v2
from flowedu.vision.models.resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
)
from flowedu.vision.models.vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn
from flowedu.vision.models.weights import load_weights, save_weights

imported(__name__)
