"""Laws of chapter 3: the update of a weight by an optimizer, compared with the library's kernel step by step."""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu_course.laws import SMALLEST, become, counted, holds, simpler


def _runs(rng, size):
    """Draw (learning rate of each step, momentum or beta1, beta2, weight decay, bias correction, seed)."""
    rates = tuple(rng.choice((0.1, 0.1, 0.01, 0.5)) for _ in range(rng.randint(1, 4 * size)))
    return rates, rng.choice((0.0, 0.5, 0.9)), rng.choice((0.9,
                                                           0.999)), rng.choice((0.0, 0.0,
                                                                                0.1)), rng.random() < 0.5, \
        rng.randint(0, 99)


def _smaller_rates(rates):
    return [rates[:-1], (rates[0],) * len(rates)] if len(rates) > 1 else []


RUNS = [((0.1,), 0.0, 0.9, 0.0, True, 0), ((0.1, 0.1), 0.9, 0.999, 0.1, False, 1),
        ((0.1, 0.5, 0.01), 0.5, 0.9, 0.1, True, 2)]
_smaller_runs = simpler((0, _smaller_rates), (3, become(0.0)), (1, become(0.5)))


def _gradients(case):
    return np.round(np.random.default_rng(case[-1]).standard_normal((len(case[0]), 1)), 1)


def _describe_run(case, steps=4):
    rates = ", ".join(f"{r:g}" for r in case[0][:steps])
    return f"w 1.0, gradients {_gradients(case)[:steps, 0].tolist()}, rates {rates}"


def _followed(case, yours, op, state, hyper, shown):
    """Compare the weight and the state with those of the kernel of `op` after each step."""
    rates, _, _, wd, _, _ = case
    gradients = _gradients(case)
    right = [flow.tensor(v, dtype=flow.float64) for v in (np.ones(1), *(np.zeros(1) for _ in state))]
    mine = [v.numpy().copy() for v in right]
    for i, (rate, g) in enumerate(zip(rates, gradients)):
        tensors = [right[0], flow.tensor(g, dtype=flow.float64), *right[1:]]
        lr, step = flow.tensor([rate], dtype=flow.float64), flow.tensor([i], dtype=flow.int64)
        REGISTRY[op](lr, step, *tensors, weight_decay=(wd,), **hyper)
        given = [mine[0].copy(), g.copy(), *(v.copy() for v in mine[1:])]
        got = yours(given[0], given[1], given[2:], rate, wd, i + 1, *hyper.values())
        if lines := counted(got, ("w", *state)):
            return [f"{SMALLEST}w {mine[0][0]:g}, g {g[0]:g}, step {i + 1}", *lines]
        for name, a, b in zip(("w", "g", *state), given, (mine[0], g, *mine[1:])):
            if not np.array_equal(a, b):
                return [f"{SMALLEST}w {mine[0][0]:g}, g {g[0]:g}, step {i + 1}",
                        f"  yours           writes to {name}: it was {b[0]:.5f} and is now {a[0]:.5f}",
                        "  others still read it: return new arrays, without += and *= on the arguments"]
        mine = [np.asarray(v) for v in got]
        for name, a, b in zip(("w", *state), mine, right):
            if a.shape != (1,) or not np.allclose(a, b.numpy(), rtol=1e-5, atol=1e-7):
                return [f"{SMALLEST}{_describe_run(case, i + 1)}",
                        f"  with            {', '.join(f'{k} {v}' for k, v in shown.items())}, decay {wd:g}",
                        f"  after step {i + 1}    yours {name} = {np.ravel(a)[0]:.5f}, should be "
                        f"{b.numpy()[0]:.5f}"]
    return None


@holds("weight and buffer are correct in each step", _runs, _smaller_runs, cases=100, told=_describe_run,
       edges=RUNS)
def momentum(case, yours):
    return _followed(case, yours, "momentum_update", ("m",), {"beta": case[1]}, {"beta": case[1]})


@holds("weight and moments are correct in each step", _runs, _smaller_runs, cases=100, told=_describe_run,
       edges=RUNS)
def adam(case, yours):
    hyper = {"beta1": case[1], "beta2": case[2], "epsilon": 1e-8, "do_bias_correction": case[4]}
    return _followed(case, yours, "adam_update", ("m", "v"), hyper, {k: v for k, v in hyper.items()
                                                                     if k != "epsilon"})
