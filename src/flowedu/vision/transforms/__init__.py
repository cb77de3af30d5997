"""Image transforms: `transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.ToTensor()])`.

Names and meanings are those of torchvision and flowvision. Every transform takes Pillow images, ndarrays (H,
W, C), and tensors (..., C, H, W).
"""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.vision.transforms import functional
from flowedu.vision.transforms.erasing import RandomErasing
from flowedu.vision.transforms.fixed import (
    CenterCrop, Compose, ConvertImageDtype, Grayscale, Lambda, Normalize, PILToTensor, Pad, Resize,
    ToPILImage, ToTensor
)
from flowedu.vision.transforms.random import (
    ColorJitter, GaussianBlur, RandomApply, RandomChoice, RandomCrop, RandomGrayscale, RandomHorizontalFlip,
    RandomOrder, RandomResizedCrop, RandomVerticalFlip
)
from flowedu.vision.transforms.resample import InterpolationMode

imported(__name__)
