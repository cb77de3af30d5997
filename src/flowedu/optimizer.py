"""flow.optimizer: optimizers, learning-rate schedulers and warm-up under OneFlow's name for them."""
from flowedu.optim import warmup
from flowedu.optim.clipping import grad_clipping
from flowedu.optim.optimizer import SGD, Adam, Optimizer
from flowedu.optim.schedule import (
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

__all__ = ["SGD", "Adam", "CosineScheduler", "CustomScheduler", "ExponentialScheduler", "InverseTimeScheduler",
           "LinearCosineScheduler", "LrScheduler", "NaturalExpScheduler", "Optimizer", "PiecewiseConstantScheduler",
           "PiecewiseScalingScheduler", "PolynomialSchduler", "PolynomialScheduler", "grad_clipping", "warmup"]
