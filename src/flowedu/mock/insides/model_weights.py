"""Names of weights in torchvision.models, such as VGG16_Weights.IMAGENET1K_V1.

Each name selects the model's file in the cache folder (vision/models/weights.py).
"""
from __future__ import annotations

from enum import Enum
from typing import Any

from flowedu.vision import transforms as T


class _Weights(Enum):
    """Pretrained weights of a model, by torchvision's names."""

    def transforms(self) -> T.Compose:
        """Return the preprocessing: center crop to 224 x 224, normalized with ImageNet's mean and std."""
        return T.Compose([T.Resize(232 if self.name.endswith("V2") else 256), T.CenterCrop(224), T.ToTensor(),
                          T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


def _make_enum(model: str, second: bool) -> type[_Weights]:
    names = ["IMAGENET1K_V1", *["IMAGENET1K_V2"] * second]
    make: Any = _Weights                # mypy does not know that the call of an enum makes a subclass
    return make(f"{model}_Weights", {**dict(zip(names, names)), "DEFAULT": names[-1]}, module=__name__)


__all__ = []
for _model, _second in (("AlexNet", False), ("MobileNet_V2", True), ("ResNet18", False), ("ResNet34", False),
                        ("ResNet50", True), ("ResNet101", True), ("ResNet152", True),
                        *((f"VGG{d}{bn}", False) for d in (11, 13, 16, 19) for bn in ("", "_BN"))):
    globals()[f"{_model}_Weights"] = _make_enum(_model, _second)
    __all__.append(f"{_model}_Weights")
