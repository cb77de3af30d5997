"""Law: every creation function returns a global tensor if placement and sbp are set, by arguments or by a
global mode, eagerly and in graphs; its logical value equals the result without them.
"""
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu.utils.global_view import current_global_mode, global_mode

B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
ROW, GRID = flow.placement("cpu", [0, 2]), flow.placement("cpu", [[0, 1], [2, 3]])
LAYOUTS = [(ROW, (split(0),)), (ROW, (B,)), (GRID, (P, split(0)))]

CALLS = {                                           # x: a (4, 6) tensor, k: the keywords under test
    "arange": lambda x, **k: flow.arange(1, 9, 2, **k), "eye": lambda x, **k: flow.eye(4, 6, **k),
    "linspace": lambda x, **k: flow.linspace(0, 1, 5, **k),
    "logspace": lambda x, **k: flow.logspace(0, 1, 5, **k),
    "full": lambda x, **k: flow.full((4, 6), 2.5, **k),
    "tensor": lambda x, **k: flow.tensor([[1, 2], [3, 4]], **k),
    "normal": lambda x, **k: flow.normal(0.0, 2.0, (4, 6), **k),
    "normal of tensors": lambda x, **k: flow.normal(x, 2.0, **k),
    "randint": lambda x, **k: flow.randint(0, 9, (4, 6), **k),
    "randperm": lambda x, **k: flow.randperm(7, **k),
    "tril_indices": lambda x, **k: flow.tril_indices(3, 4, **k),
    "triu_indices": lambda x, **k: flow.triu_indices(3, 4, **k),
    "Tensor": lambda x, **k: flow.Tensor([1, 2, 3], **k),
    "LongTensor": lambda x, **k: flow.LongTensor([1, 2, 3], **k),
    **{n: lambda x, n=n, **k: getattr(flow, n)(4, 6, **k) for n in ("zeros", "ones", "empty", "rand",
                                                                    "randn")},
    **{n: lambda x, n=n, **k: getattr(flow, n)(8, **k) for n in dir(flow) if n.endswith("_window")},
    **{f"{n}_like": lambda x, n=n, **k: getattr(flow, f"{n}_like")(x, **k)
       for n in ("zeros", "ones", "empty", "rand", "randn")},
    "full_like": lambda x, **k: flow.full_like(x, 3, **k),
    "randint_like": lambda x, **k: flow.randint_like(x, 2, 9, **k),
    **{f"x.new_{n}": lambda x, n=n, **k: getattr(x, f"new_{n}")(4, 6, **k)
       for n in ("zeros", "ones", "empty")},
    "x.new_full": lambda x, **k: x.new_full((4, 6), 3, **k),
    "x.new_tensor": lambda x, **k: x.new_tensor([[1, 2], [3, 4]], **k)}
LIKE = [name for name in CALLS if name.endswith("_like") or name.startswith("x.")]


@pytest.fixture(autouse=True)
def four(world):
    world(4)


def local_x():
    return flow.tensor(np.arange(24, dtype=np.float32).reshape(4, 6))


def assert_same_global_tensor(got, want, layout, name):
    assert got.is_global and got.placement == layout[0] and tuple(got.sbp) == layout[1], name
    assert got.dtype is want.dtype and got.shape == want.shape, name
    if "empty" not in name:
        np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=name)


def test_the_list_is_complete():
    spaces = [("", flow), ("x.", flow.Tensor)]
    for prefix, space in spaces:
        for name in dir(space):
            f = getattr(space, name)
            if not inspect.isroutine(f) or name.startswith("_"):
                continue
            try:
                names = inspect.signature(f).parameters
            except (TypeError, ValueError):
                continue
            if {"dtype", "device"} <= names.keys() and name not in ("to", "as_tensor"):
                assert {"placement", "sbp"} <= names.keys() and prefix + name in CALLS, prefix + name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_placement_and_sbp(name, layout):
    flow.manual_seed(3)
    want = CALLS[name](local_x())
    flow.manual_seed(3)
    assert_same_global_tensor(CALLS[name](local_x(), placement=layout[0], sbp=layout[1]), want, layout, name)
    flow.manual_seed(3)
    x = local_x()
    with global_mode(True, *layout):
        assert_same_global_tensor(CALLS[name](x), want, layout, name)
    got = CALLS[name](local_x())
    assert got.is_local and not current_global_mode().is_enabled


@pytest.mark.parametrize("name", LIKE)
def test_like_a_global_tensor(name):
    layout = LAYOUTS[0]
    x = local_x().to_global(GRID, (B, B)).to_global(ROW, split(0))
    flow.manual_seed(3)
    want = CALLS[name](local_x())
    for keywords, where in ({}, layout), ({"sbp": B},
                                          (ROW, (B,))), ({"placement": flow.placement("cpu", [1, 3])},
                                                         (flow.placement("cpu", [1, 3]), (split(0),))):
        flow.manual_seed(3)
        assert_same_global_tensor(CALLS[name](x, **keywords), want, where, name)
    assert CALLS[name](x, device="cpu").is_local
    with pytest.raises(flow.errors.CheckError, match="placement and sbp"):
        CALLS[name](local_x(), sbp=B)


def in_graph(mode, layout):
    """Call the functions in a graph; return their results by name."""
    names = [n for n in CALLS if n not in ("normal of tensors", "Tensor", "LongTensor") and n not in LIKE]

    class Made(flow.nn.Graph):
        def build(self):
            if mode:
                with global_mode(True, *layout):
                    return {n: CALLS[n](None) for n in names}
            return {n: CALLS[n](None, placement=layout[0], sbp=layout[1]) for n in names}

    return Made()()


@pytest.mark.parametrize("mode", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_creation_in_a_graph_equals_eager_creation(mode, layout):
    for name, got in in_graph(mode, layout).items():
        want = CALLS[name](None)
        assert_same_global_tensor(got, want, layout, name if "rand" not in name and name != "normal"
                                  else "empty")


@pytest.mark.parametrize("layout", [*LAYOUTS, (GRID, (split(0), split(0)))])
@pytest.mark.parametrize("make", [lambda: flow.ones(4, 6), lambda: flow.arange(4),
                                  lambda: flow.tensor([[1.0, 2], [3, 4]]), lambda: flow.eye(4).mul(2)])
def test_tensors_created_in_build_become_global(make, layout):
    class Made(flow.nn.Graph):
        def build(self):
            return make().to_global(*layout)

    assert_same_global_tensor(Made()(), make().to_global(*layout), layout, "in build")


def test_tensors_created_before_build_stay_local():
    x = local_x()

    class Read(flow.nn.Graph):
        def build(self):
            return x.to_global(ROW, B)

    with pytest.raises(flow.errors.UnsupportedError, match="does not become global inside build"):
        Read()()


def test_a_mode_sets_the_device():
    x = local_x().to_global(ROW, B)
    with global_mode(True, GRID, (split(0), B)):
        assert x.device == flow.device("cpu") and x.to(x.device) is x
        y = flow.ones(4, 6, device=x.device)
        assert (y.placement == GRID and current_global_mode().placement == GRID
                and y.sbp == current_global_mode().sbp)
        with global_mode(False, ROW, B):
            assert not current_global_mode().is_enabled and flow.ones(2).is_local
        assert flow.ones(4).is_global and flow.ones(4, placement=ROW, sbp=B).placement == ROW
    with pytest.raises(RuntimeError, match="placement.*device|device.*placement|Only local tensors"):
        x.device  # noqa: B018
    for wrong in {"placement": ROW}, {"sbp": B}, {}:
        with pytest.raises(flow.errors.CheckError, match="needs placement and sbp"):
            global_mode(True, **wrong)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("draw", [lambda x: flow.bernoulli(x), lambda x: x.bernoulli(0.3),
                                  lambda x: flow.poisson(9 * x),
                                  lambda x: flow.multinomial(x, 3), lambda x: x[0].multinomial(3, True),
                                  lambda x: x.unique(), lambda x: x.nonzero(), lambda x: flow.histc(x, 5),
                                  lambda x: x.unique(return_counts=True)[1], lambda x: flow.normal(x, x)])
def test_results_computed_from_a_global_tensor_are_global(draw, layout):
    """Sampled from it or searched in it: the same values as for a local tensor, broadcast on every device."""
    x = local_x() / 24
    flow.manual_seed(5)
    want = draw(x)
    flow.manual_seed(5)
    got = draw(flow.tensor(x.numpy(), placement=layout[0], sbp=layout[1]))
    assert got.is_global and got.placement == layout[0] and got.dtype is want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
