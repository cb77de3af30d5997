"""Where PyTorch keeps the base class of optimizers: `from flowedu.optim.optimizer import Optimizer`."""
from flowedu.optim.base import Optimizer
from flowedu.optim.group import ParamGroup

__all__ = ["Optimizer", "ParamGroup"]
