"""Alias module for an import path of PyTorch: `from flowedu.optim.optimizer import Optimizer`."""
from flowedu.optim.base import Optimizer
from flowedu.optim.group import ParamGroup

__all__ = ["Optimizer", "ParamGroup"]
