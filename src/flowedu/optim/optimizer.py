"""Where PyTorch keeps the base class of optimizers: `from flowedu.optim.optimizer import Optimizer`."""
from flowedu.core.layers.group import ParamGroup
from flowedu.optim.base import Optimizer

__all__ = ["Optimizer", "ParamGroup"]
