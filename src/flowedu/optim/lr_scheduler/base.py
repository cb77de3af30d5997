"""Base of the schedulers: learning rates as functions of the initial rate and the number of steps."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowedu.errors import ArgumentError, CallError, UnsupportedError
from flowedu.errors.ignored import refuse_ignored
from flowedu.errors.once import say_once
from flowedu.optim.base import Optimizer

put = dict.__setitem__                   # the cached values of a group do not depend on its rate


class LRScheduler:
    """Base class of the schedulers. A subclass defines `get_lr(base_lr, step)`.

    Attributes: optimizer, last_step (also as last_epoch, PyTorch's name), base_lrs, verbose.

    Args:
        optimizer: optimizer whose groups get the rates. The rate of a group when its first scheduler is
            constructed is stored in the group as `initial_lr`.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0. The
            constructor sets the rates of step last_step + 1.
        verbose: print every rate.
    """

    _uncalled: tuple[str, ...] = ()           # methods that only PyTorch calls
    _followed: int | None = None              # the optimizer's number of steps at the last step by a graph

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_ignored(cls, "override get_lr")

    def __init__(self, optimizer: Optimizer, last_step: int = -1, verbose: bool = False):
        if not isinstance(optimizer, Optimizer):
            raise CallError(f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer object",
                            expected="an optimizer of flow.optim", got=type(optimizer).__name__,
                            fix=f"{type(self).__name__}(optimizer, ...)")
        self.optimizer, self.last_step, self.verbose = optimizer, last_step, verbose
        for i, group in enumerate(optimizer.param_groups):
            if last_step == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError(f"{type(self).__name__}: param 'initial_lr' is not specified in "
                                    f"param_groups[{i}] when resuming an optimizer",
                                    expected="a group with initial_lr", got=", ".join(group),
                                    fix="load the optimizer's state first, or leave last_step out")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._last_lr: list[float] = []
        self.step()

    @property
    def last_epoch(self) -> int:
        """PyTorch's name of last_step."""
        return self.last_step

    def get_lr(self, base_lr: float, step: int) -> float:
        """Return the rate at `step` (from 0) of a group whose initial rate is base_lr."""
        raise UnsupportedError(f"{type(self).__name__}: no get_lr(base_lr, step) is defined",
                               got=type(self).__name__,
                               expected="a class that defines it", fix="return base_lr for a constant rate")

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        """Return get_lr for the optimizer's group number `group`, without side effects."""
        return self.get_lr(base_lr, step)

    def step(self) -> None:
        """Advance by one step and set the rates.

        If an nn.Graph with this schedule has already made the step, this method only issues a warning, once.
        """
        if self._followed is not None and self._is_made():
            return
        self.last_step += 1
        self._set(self._rates())

    def _rates(self) -> list[float]:
        """Return the rates of the groups at self.last_step."""
        return [self.lr_at(base, self.last_step, i) for i, base in enumerate(self.base_lrs)]

    def _is_made(self) -> bool:
        """Return True if a graph has made this step of the schedule."""
        made = self._followed == self.optimizer._steps[0]
        if made:
            say_once(f"{type(self).__name__}.step()",
                     "add_optimizer was given the schedule, so the nn.Graph has made this step of it", 4)
        return made

    def follow_(self) -> None:
        """Make one step of the schedule after a step of the nn.Graph that contains it."""
        self._followed = None
        self.step()
        self._followed = self.optimizer._steps.item()

    def go_to_(self, step: int) -> None:
        """Go to a step, for nn.Graph.load_state_dict."""
        self.last_step, self._followed = step - 1, None
        self.step()

    def _set(self, rates: list[float]) -> None:
        self._last_lr = rates
        for group, lr in zip(self.optimizer.param_groups, rates):
            put(group, "lr", lr)
        if self.verbose:
            for i, lr in enumerate(rates):
                print(f"Last step {self.last_step} adjusting learning rate of param_groups[{i}] to {lr}")

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return self._last_lr

    def state_dict(self) -> dict:
        """Return all attributes except the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_followed")}

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore a result of state_dict, which does not contain the rates of the optimizer's groups."""
        self._followed = None
        self.__dict__.update(state_dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(step={self.last_step}, lr={self._last_lr})"


class _ByFunction(LRScheduler):
    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_step: int = -1,
                 verbose: bool = False):
        groups = len(getattr(optimizer, "param_groups", ()))
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda,
                                                                   (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups or not all(map(callable, self.lr_lambdas)):
            raise ArgumentError(f"{type(self).__name__}: lr_lambda does not fit", got=repr(lr_lambda)[:80],
                                expected=f"a function of the step, or a list of {groups}, one per group",
                                fix="lr_lambda=lambda step: 0.95 ** step")
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return self.lr_at(base_lr, step)

    def state_dict(self) -> dict:
        """Return the state without functions; attributes of callable objects are included."""
        kept = [None if hasattr(f, "__code__") else dict(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: Mapping) -> None:
        functions = self.lr_lambdas
        super().load_state_dict(state_dict)
        for f, kept in zip(functions, state_dict["lr_lambdas"]):
            if kept is not None:
                f.__dict__.update(kept)
        self.lr_lambdas = functions


class LambdaLR(_ByFunction):
    """Rate base_lr * lr_lambda(step).

    Args:
        optimizer: optimizer whose groups get the rates.
        lr_lambda: function of the step, or a list with one per group.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * self.lr_lambdas[group](step)


class MultiplicativeLR(_ByFunction):
    """Rate base_lr * lr_lambda(1) * ... * lr_lambda(step).

    Args:
        optimizer: optimizer whose groups get the rates.
        lr_lambda: function of the step, or a list with one per group.
        last_step: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_step: int = -1,
                 verbose: bool = False):
        self._products: dict[int, list[float]] = {}
        super().__init__(optimizer, lr_lambda, last_step, verbose)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        known = self._products.setdefault(group, [1.0])          # [i]: the product up to step i
        for i in range(len(known), step + 1):
            known.append(known[-1] * self.lr_lambdas[group](i))
        return base_lr * known[step]

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().state_dict().items() if k != "_products"}
