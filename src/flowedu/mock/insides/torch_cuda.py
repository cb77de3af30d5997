"""cuda.FloatTensor and other GPU tensor types. `_initialized` is False: GPUs have no own generators."""
from flowedu.mock.insides.torch_tensors import NAMES, _make_types

_initialized = False
globals().update(_make_types("torch.cuda", "cuda"))
__all__ = [*NAMES]
