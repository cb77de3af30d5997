"""flow.optim.lr_scheduler: learning rates that change with the number of steps.

    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    for ...:
        ...; optimizer.step(); scheduler.step()

A step is one call of `scheduler.step()`, usually one per batch. An nn.Graph makes the steps itself after
`self.add_optimizer(optimizer, lr_sch=scheduler)`.
"""
from flowedu.optim.lr_scheduler.base import LambdaLR, LRScheduler, MultiplicativeLR
from flowedu.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR, WarmUpLR
from flowedu.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from flowedu.optim.lr_scheduler.decay import (
    ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CosineDecayLR, CosineScheduler, ExponentialLR,
    LinearLR, MultiStepLR, PolynomialLR, StepLR)
from flowedu.optim.lr_scheduler.plateau import ReduceLROnPlateau

WarmupLR = WarmUpLR

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
           "CosineDecayLR", "CosineScheduler", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR",
           "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau",
           "SequentialLR", "StepLR", "WarmUpLR", "WarmupLR"]
