"""An optimizer step on cuda updates all parameters of a group in one launch, with the values of the CPU."""
import io
import math

import numpy as np
import pytest
from cuda_common import in_simulator
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.cuda.launches import many, update
from flowedu.cuda.launches.many import BLOCK
from flowedu.cuda.launches.update import ROWS, RULES
from laws.test_updates import GROUPS, group_of

KINDS = {"SGD": {"lr": 0.1, "weight_decay": 0.1}, "Momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
         "Adam": {"lr": 0.01}, "Amsgrad": {"lr": 0.01, "amsgrad": True},
         "AdamW": {"lr": 0.01, "weight_decay": 0.1},
         "LAMB": {"lr": 0.01}, "RMSprop": {"lr": 0.01}, "Centered": {"lr": 0.01, "centered": True},
         "Adagrad": {"lr": 0.1}, "Adadelta": {"lr": 1.0}}
CLASSES = {"Momentum": "SGD", "Amsgrad": "Adam", "Centered": "RMSprop"}
SHAPES = st.lists(st.sampled_from([(), (0,), (1,), (3, 5), (BLOCK - 1,), (BLOCK,), (BLOCK + 1,), (70, 31),
                                   (2, 3, 4)]),
                  min_size=1, max_size=2 * ROWS + 3)
few = settings(max_examples=8)


def models(name, shapes, seed, dtypes=(np.float32,)):
    """Yield (parameters, optimizer) on the CPU and on cuda."""
    for device in ("cpu", "cuda"):
        rng = np.random.default_rng(seed)
        ps = [flow.nn.Parameter(flow.tensor(np.asarray(rng.standard_normal(s), dtypes[i % len(dtypes)]),
                                            device=device))
              for i, s in enumerate(shapes)]
        yield ps, getattr(flow.optim, CLASSES.get(name, name))(ps, **KINDS[name])


def gradients(ps, seed, without):
    rng = np.random.default_rng(seed)
    for i, p in enumerate(ps):
        g = np.asarray(rng.standard_normal(tuple(p.shape)), p.dtype.numpy)
        p.grad = None if i in without else flow.tensor(g, device=p.device)


@pytest.mark.parametrize("name", KINDS)
@few
@given(shapes=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_a_step_matches_the_cpu(name, shapes, seed, data):
    """Any number of parameters: some empty, some without a gradient, of two dtypes, one not contiguous."""
    (here, mine), (there, theirs) = models(name, shapes, seed, (np.float32, np.float64))
    without = data.draw(st.sets(st.integers(0, len(shapes) - 1), max_size=3))
    for k in range(3):
        for ps, opt in ((here, mine), (there, theirs)):
            gradients(ps, seed + k, without)
            if k == 1:
                for p in ps:                              # a gradient with a transposed layout
                    if p.grad is not None and p.ndim == 2:
                        p.grad = p.grad.t().contiguous().t()
            opt.step()
    for i, (a, b) in enumerate(zip(here, there)):
        tolerance = 1e-9 if a.dtype is flow.float64 else 2e-5
        np.testing.assert_allclose(b.detach().cpu().numpy(), a.detach().numpy(), rtol=tolerance,
                                   atol=tolerance)
        assert (bool(mine.state.get(a)) == bool(theirs.state.get(b)) and (i not in without
                                                                          or not theirs.state.get(b)))


@in_simulator
@pytest.mark.parametrize("name", GROUPS)
def test_a_step_takes_one_launch_per_table(name):
    op, rule, rng = REGISTRY[name], RULES[name], np.random.default_rng(0)
    for count in (1, ROWS, ROWS + 1):
        arrays = [np.array([0.1], np.float32), np.array([3], np.int64)]
        for _ in range(count):
            arrays += group_of(name, (3, 4), np.float32, rng)
        with flow.cuda.profile(io.StringIO()) as p:
            op.call(tuple([flow.tensor(a, device="cuda") for a in arrays]), op.defaults)
        tables = math.ceil(count / ROWS)
        found = {k: c["launches"] for k, c in p.kernels.items() if k.startswith(name)}
        wanted = [name, *[f"{name}_norms"] * bool(rule.norms), *[f"{name}_end"] * bool(rule.end)]
        assert found == dict.fromkeys(wanted, tables)


@pytest.mark.parametrize("kind", [2.0, 1.0, math.inf])
def test_clipping_matches_the_cpu(kind):
    shapes = [(3, 5), (0,), (), (BLOCK + 1,)]
    norms = []
    for ps, _ in models("SGD", shapes, 0):
        gradients(ps, 1, {0} if kind == 1.0 else set())
        norms.append(flow.nn.utils.clip_grad_norm_(ps, 0.5, kind).cpu().numpy())
        norms.append([None if p.grad is None else p.grad.cpu().numpy() for p in ps])
    np.testing.assert_allclose(norms[2], norms[0], rtol=1e-5)
    for a, b in zip(norms[3], norms[1]):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@in_simulator
def test_the_norm_of_many_gradients_is_one_pass():
    """Up to 128 gradients take two launches; gradients with other layouts have the same norm by another
    method.
    """
    rng = np.random.default_rng(0)
    shapes = [(3,)] * 127 + [(BLOCK + 1,), (5, 4), (0,)]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    want = math.sqrt(sum(float((a.astype(np.float64) ** 2).sum()) for a in arrays))
    there = [flow.tensor(a, device="cuda") for a in arrays]
    with flow.cuda.profile(io.StringIO()) as p:
        got = flow.nn.utils.get_total_norm(there)
    assert {k: c["launches"] for k, c in p.kernels.items()} == {"square_sums": 2, "root": 1}
    assert got.is_cuda and not got.ndim
    np.testing.assert_allclose(float(got), want, rtol=1e-6)
    for change in (lambda t: t.double(), lambda t: flow.tensor(t.cpu().numpy().T.copy(), device="cuda").t()):
        others = [*there[:-2], change(there[-2])]
        np.testing.assert_allclose(float(flow.nn.utils.get_total_norm(others)), want, rtol=1e-6)
    nothing = flow.nn.utils.get_total_norm([flow.zeros(3, device="cuda")])
    assert float(nothing) == 0


@pytest.mark.parametrize("name", ["SGD", "LAMB"])
def test_blocks_process_several_pieces(name, monkeypatch):
    """Above 65536 pieces, a block processes several of them and moves from one parameter to the next."""
    monkeypatch.setattr(update, "MOST_BLOCKS", 2)
    monkeypatch.setattr(many, "MOST_BLOCKS", 2)
    shapes = [(7,), (3 * BLOCK + 1,), (5, 7), (BLOCK, 2), (11,)]
    (here, mine), (there, theirs) = models(name, shapes, 0)
    for ps, opt in ((here, mine), (there, theirs)):
        gradients(ps, 1, set())
        opt.step()
    for a, b in zip(here, there):
        np.testing.assert_allclose(b.detach().cpu().numpy(), a.detach().numpy(), rtol=2e-5, atol=2e-5)
    norms = [float(flow.nn.utils.get_total_norm([p.detach() for p in ps])) for ps in (here, there)]
    assert math.isclose(*norms, rel_tol=1e-5)
