"""Optimizers of tensors (flow.optim): SGD, Adam, and others.

The optimizers of job functions (flow.optimizer) are in oneflow04/optim.
"""
from flowedu.optim.adam import LAMB, Adam, AdamW
from flowedu.optim.adaptive import Adadelta, Adagrad, RMSprop
from flowedu.optim.base import Optimizer
from flowedu.optim.by_formula import ASGD, Adamax, Ftrl, NAdam, RAdam, Rprop
from flowedu.core.layers.group import UpdateRule
from flowedu.optim.group import ParamGroup
from flowedu.optim.lbfgs import LBFGS
from flowedu.optim.sgd import SGD
from flowedu.optim import lr_scheduler
