"""cuda.FloatTensor and other tensor types on the GPU. `_initialized`: all devices share one generator."""
from flowedu.mock.insides.torch_tensors import NAMES, _make_types

_initialized = False
globals().update(_make_types("torch.cuda", "cuda"))
__all__ = [*NAMES]
