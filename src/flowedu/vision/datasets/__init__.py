"""Labelled image datasets: `datasets.CIFAR10("data", transform=transforms.ToTensor(), download=True)[0]`.

Names, arguments, and file layouts are those of torchvision and flowvision.
"""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.vision.datasets.base import VisionDataset
from flowedu.vision.datasets.cifar import CIFAR10, CIFAR100
from flowedu.vision.datasets.drawn import FakeData, SyntheticCIFAR10
from flowedu.vision.datasets.folder import IMG_EXTENSIONS, DatasetFolder, ImageFolder
from flowedu.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST, MNISTSubset

imported(__name__)
