"""Optimizers, learning-rate schedules, warm-up, clipping, and loss scaling of flow.optimizer."""
from flowedu.oneflow04.optim import warmup
from flowedu.oneflow04.optim.clipping import grad_clipping
from flowedu.oneflow04.optim.loss_scale import loss_scale
from flowedu.oneflow04.optim.optimizers import (
    LAMB,
    LARS,
    SGD,
    SGDW,
    Adam,
    AdamW,
    CombinedOptimizer,
    LazyAdam,
    Optimizer,
    RMSProp,
)
from flowedu.oneflow04.optim.schedule import (
    CosineScheduler,
    CustomScheduler,
    ExponentialScheduler,
    InverseTimeScheduler,
    LinearCosineScheduler,
    LrScheduler,
    NaturalExpScheduler,
    PiecewiseConstantScheduler,
    PiecewiseScalingScheduler,
    PolynomialSchduler,
    PolynomialScheduler,
)

__all__ = ["LAMB", "LARS", "SGD", "SGDW", "Adam", "AdamW", "CombinedOptimizer", "CosineScheduler",
           "CustomScheduler", "ExponentialScheduler", "InverseTimeScheduler", "LazyAdam",
           "LinearCosineScheduler", "LrScheduler", "NaturalExpScheduler", "Optimizer",
           "PiecewiseConstantScheduler", "PiecewiseScalingScheduler", "PolynomialSchduler",
           "PolynomialScheduler", "RMSProp", "grad_clipping", "loss_scale", "warmup"]
