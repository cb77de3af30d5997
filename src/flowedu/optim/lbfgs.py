"""L-BFGS, which approximates second derivatives from recent steps and gradient changes."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from flowedu.core.layers.group import UpdateRule
from flowedu.errors import ArgumentError, CallError, StateError, UnsupportedError
from flowedu.optim.base import Optimizer
from flowedu.optim.line_search import Point, strong_wolfe
from flowedu.tensor import Tensor, enable_grad, no_grad
from flowedu.tensor.shapes.join_and_pad import cat


class LBFGS(Optimizer):
    """L-BFGS optimizer; `step(closure)` makes up to max_iter iterations.

    closure clears the gradients, computes the loss, calls backward, and returns the loss. All parameters form
    one group. The state of the first parameter contains "n_iter", "func_evals", and the stored steps.

    Args:
        params: parameters.
        lr: length of a step, or of the first trial of a line search.
        max_iter: iterations of one step().
        max_eval: calls of closure in one step(); default: 1.25 max_iter.
        tolerance_grad: stop if no element of the gradient has a larger absolute value.
        tolerance_change: stop if no element of the step has a larger absolute value.
        history_size: number of stored steps.
        line_search_fn: "strong_wolfe"; default: None, no line search.
    """

    _uncalled = ("_add_grad", "_clone_param", "_directional_evaluate", "_gather_flat_grad", "_numel",
                 "_set_param")

    def __init__(self, params: Iterable, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None):
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4
                                  if max_eval is None else
                                  max_eval, "tolerance_grad": tolerance_grad,
                                  "tolerance_change": tolerance_change,
                                  "history_size": history_size, "line_search_fn": line_search_fn})
        self.one_group()

    def one_group(self) -> None:
        if len(self.param_groups) != 1:
            raise ArgumentError("optim.LBFGS: it doesn't support per-parameter options (parameter groups)",
                                expected="one group", got=f"{len(self.param_groups)} groups",
                                fix="LBFGS(model.parameters())")

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["line_search_fn"] in (None, "strong_wolfe"), "line_search_fn",
                  group["line_search_fn"], "None or 'strong_wolfe'")

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        raise UnsupportedError("optim.LBFGS: not in an nn.Graph, for it calls the loss as often as it needs",
                               expected="an optimizer of one update", got="LBFGS",
                               fix="optimizer.step(closure), eagerly")

    # ---- all parameters as one vector
    def _gradient(self) -> Tensor:
        return cat([(p * 0 if p.grad is None else p.grad).detach().reshape(-1) for p in self._parameters()])

    def _move(self, length: float, direction: Tensor) -> None:
        at = 0
        for p in self._parameters():
            n = p.numel()
            p.add_(direction[at:at + n].reshape(p.shape), alpha=length)
            at += n

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:
        """Make up to max_iter iterations and return the loss before the first one."""
        if closure is None:
            raise CallError("optim.LBFGS.step: it needs a closure",
                            expected="a function that computes the loss again",
                            got="None",
                            fix="def closure(): optimizer.zero_grad(); loss = ...; loss.backward(); "
                            "return loss")
        self._eager_only("step")
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Tensor]) -> Tensor:
        group = self.param_groups[0]
        memory: Any = self.state.setdefault(next(self._parameters()), {})
        memory.setdefault("n_iter", 0)
        memory.setdefault("func_evals", 0)

        def evaluate() -> Tensor:
            with enable_grad():
                return closure()

        first = evaluate()
        loss, calls, g = float(first), 1, self._gradient()
        memory["func_evals"] += 1
        if float(g.abs().max()) <= group["tolerance_grad"]:
            return first
        d, t, before = memory.get("d"), memory.get("t"), loss
        for iteration in range(1, group["max_iter"] + 1):
            memory["n_iter"] += 1
            d = self._direction(memory, g, d, t, group["history_size"])
            memory["prev_flat_grad"], before = g.clone(), loss
            t = (min(1.0, 1.0 / float(g.abs().sum())) * group["lr"] if memory["n_iter"] == 1
                 else float(group["lr"]))
            slope = float(g.dot(d))
            if slope > -group["tolerance_change"]:
                break
            asked = 0
            if group["line_search_fn"] == "strong_wolfe":
                found, asked = self._searched(evaluate, Point(0.0, loss, g, slope), d, t,
                                              group["max_eval"] - calls)
                t, loss, g = found.t, found.loss, found.gradient
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration != group["max_iter"]:
                    loss, g, asked = float(evaluate()), self._gradient(), 1
            calls += asked
            memory["func_evals"] += asked
            if iteration == group["max_iter"] or calls >= group["max_eval"] or \
                    float(g.abs().max()) <= group["tolerance_grad"] or \
                    float((d * t).abs().max()) <= group["tolerance_change"] or \
                    abs(loss - before) < group["tolerance_change"]:
                break
        memory |= {"d": d, "t": t, "prev_loss": before}
        return first

    def _searched(self, evaluate: Callable[[], Tensor], start: Point, d: Tensor, t: float, most: int
                  ) -> tuple[Point, int]:
        kept = [p.detach().clone() for p in self._parameters()]

        def at(length: float) -> Point:
            self._move(length, d)
            loss, g = float(evaluate()), self._gradient()
            for p, old in zip(self._parameters(), kept):
                p.copy_(old)
            return Point(length, loss, g, float(g.dot(d)))

        return strong_wolfe(at, start, t, float(d.abs().max()), most=most)

    @staticmethod
    def _direction(memory: dict, g: Tensor, d: Tensor | Any, t: float | Any, history: int) -> Tensor:
        """Return minus the gradient times an inverse Hessian that maps each gradient change to its step."""
        if memory["n_iter"] == 1:
            memory |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            return -g
        dirs, steps, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
        y, s = g - memory["prev_flat_grad"], d * t
        ys = float(y.dot(s))
        if ys > 1e-10:
            if len(dirs) == history:
                for row in (dirs, steps, ro):
                    row.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            memory["H_diag"] = ys / float(y.dot(y))
        q, al = -g, []
        for y, s, r in zip(reversed(dirs), reversed(steps), reversed(ro)):
            al.append(float(s.dot(q)) * r)
            q = q - al[-1] * y
        q = q * memory["H_diag"]
        for y, s, r, a in zip(dirs, steps, ro, reversed(al)):
            q = q + (a - float(y.dot(q)) * r) * s
        return q

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore a result of state_dict."""
        if [len(g["params"]) for g in state_dict["param_groups"]] != [len(g["params"])
                                                                      for g in self.param_groups]:
            raise StateError("loaded state dict does not fit", expected="one group of as many parameters",
                             fix="make the optimizer as it was made when it was saved",
                             got=f"{len(state_dict['param_groups'])} groups")
        old = state_dict["param_groups"][0]
        self.param_groups[0].update(deepcopy(old.get("_options", {k: v for k, v in old.items()
                                                                  if k != "params"})))
        found = deepcopy(dict(state_dict["state"].get(0, {})))
        self.state[next(self._parameters())] = found
        self.__setstate__({"state": self.state, "param_groups": self.param_groups})
