"""Law: a function that refuses invalid values does so in every mode: eagerly, in graphs, in jobs, under vmap,
and with global tensors. tests/cuda/test_value_checks.py runs the same table on GPUs.
"""
import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
import flowedu.distributions as D
from flowedu.errors import FlowError, KernelError
from flowedu.ops.checks import require_range

F = flow.nn.functional
NAN, INF = float("nan"), float("inf")
ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def normal_of(loc, scale):
    return D.Normal(loc, scale).log_prob(loc)


def require_inside(x, low, high, **more):
    return require_range(x, low, high, problem="inside: {got}", **more)


# {name: (function, good arguments, bad ones, ...)}
CHECKED = {
    "within": (lambda x: require_inside(x, 0, 1), ([0.0, 1.0],), ([2.0, 0.0],), ([0.0, -1e-30],),
               ([NAN, 0.5],)),
    "within but NaN": (lambda x: require_inside(x, 0, 1, nan=True), ([NAN, 1.0],), ([NAN, 2.0],)),
    "within int64": (lambda x: require_inside(x, -2 ** 40, 2 ** 40), ([2 ** 40, -2 ** 40],),
                     ([0, 2 ** 40 + 1],), ([-2 ** 40 - 1, 0],)),
    "within fractions": (lambda x: require_inside(x, -0.5, 1.5), ([0, 1],), ([0, 2],), ([-1, 0],)),
    "within uint8": (lambda x: require_inside(flow.ops.REGISTRY["cast"](x, dtype=flow.uint8), -300, 3),
                     ([0, 3],), ([0, 200],)),
    "require": (lambda x, y: require_inside(x, 0, 1, tested=y), (ROWS, [0.0, 1.0, 0.0]),
                (ROWS, [0.0, 1.5, 0.0])),
    "require alike": (lambda x, y: require_inside(x, 0, 1, tested=y), (ROWS, [[0, 1, 1], [1, 1, 1]]),
                      (ROWS, [[0, 1, 1], [1, 1, 2]])),
    "one_hot": (lambda x: F.one_hot(x, 3), ([1, 2],), ([1, 3],), ([-1, 0],)),
    "one_hot int32": (lambda x: F.one_hot(x.int(), 3), ([1, 2],), ([1, 3],), ([-1, 0],)),
    "one_hot of no class": (lambda x: F.one_hot(x[:1] + 0, 1), ([0, 9],), ([1, 0],)),
    "bernoulli": (flow.bernoulli, ([0.0, 1.0],), ([0.5, 1.5],), ([-0.1, 0.5],), ([NAN, 0.5],)),
    "bernoulli half": (lambda p: flow.bernoulli(p.half()), ([0.0, 1.0],), ([0.5, 1.5],), ([NAN, 0.5],)),
    "bernoulli double": (lambda p: flow.bernoulli(p.double()), ([0.0, 1.0],), ([0.5, 1.5],), ([NAN, 0.5],)),
    "bernoulli_": (lambda p: flow.zeros_like(p).bernoulli_(p), ([0.0, 1.0],), ([0.5, 1.5],), ([NAN, 0.5],)),
    "multinomial": (lambda w: flow.multinomial(w, 2), ([0.0, 1.0, 2.0],), ([1.0, -1.0, 2.0],),
                    ([0.0, 0.0, 0.0],), ([1.0, NAN, 1.0],), ([1.0, INF, 1.0],), ([0.0, 0.0, 1.0],)),
    "multinomial rows": (lambda w: flow.multinomial(w, 4, True), (ROWS,), ([[1.0, 2.0], [0.0, 0.0]],)),
    "normal": (flow.normal, ([0.0, 1.0], [0.0, 2.0]), ([0.0, 1.0], [1.0, -2.0])),
    "normal of std": (lambda s: flow.normal(0.0, s), ([0.0, 2.0],), ([1.0, -2.0],)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, ([1.0], [2.0], [0.5]), ([1.0], [2.0], [-0.5])),
    "gaussian_nll_loss rows": (F.gaussian_nll_loss, (ROWS, ROWS, [1.0, 0.0]), (ROWS, ROWS, [1.0, -1e-30])),
    "binary_cross_entropy": (F.binary_cross_entropy, ([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.01], [0.0, 1.0]),
                             ([-0.1, 1.0], [0.0, 1.0]), ([NAN, 1.0], [0.0, 1.0])),
    "binary_cross_entropy half": (lambda x, y: F.binary_cross_entropy(x.half(), y.half()),
                                  ([0.0, 1.0], [0.0, 1.0]),
                                  ([0.0, 2.0], [0.0, 1.0]), ([NAN, 1.0], [0.0, 1.0])),
    "multilabel_margin_loss": (F.multilabel_margin_loss, (ROWS, [[0, 2, -1], [1, -1, 7 % 3]]),
                               (ROWS, [[0, 2, -1], [-5, 0, 0]]), (ROWS, [[0, 3, -1], [0, -1, 0]])),
    "multi_margin_loss": (F.multi_margin_loss, (ROWS, [0, 2]), (ROWS, [0, 3]), (ROWS, [-1, 0])),
    "multi_margin_loss weight": (lambda x, y: F.multi_margin_loss(x, y, weight=x[0]), (ROWS, [0, 2]),
                                 (ROWS, [0, 3]), (ROWS, [-1, 0])),
    "cross_entropy": (F.cross_entropy, (ROWS, [0, 2]), (ROWS, [0, 3]), (ROWS, [-1, 0])),
    "cross_entropy weight": (lambda x, y: F.cross_entropy(x, y, x[0]), (ROWS, [0, 2]), (ROWS, [0, 3]),
                             (ROWS, [-1, 0])),
    "nll_loss": (F.nll_loss, (ROWS, [0, 2]), (ROWS, [0, 3]), (ROWS, [-1, 0])),
    "embedding": (F.embedding, ([0, 1], ROWS), ([0, 2], ROWS), ([-1, 0], ROWS)),
    "embedding_bag": (lambda i, w, o: F.embedding_bag(i, w, o), ([0, 1, 1], ROWS, [0, 2]),
                      ([0, 1, 1], ROWS, [0, 7]),
                      ([0, 1, 1], ROWS, [0, 3, 2]), ([0, 1, 1], ROWS, [0, -2]), ([0, 1, 1], ROWS, [1, 2]),
                      ([0, 1, 2], ROWS, [0, 2])),
    "embedding_bag last": (lambda i, w, o: F.embedding_bag(i, w, o, include_last_offset=True, mode="sum"),
                           ([0, 1, 1], ROWS, [0, 2, 3]), ([0, 1, 1], ROWS, [0, 2, 4]),
                           ([0, 1, 1], ROWS, [0, 2, 1])),
    "scatter": (lambda x, i: flow.scatter(x, 1, i, 5.0), (ROWS, [[0], [2]]), (ROWS, [[3], [0]]),
                (ROWS, [[0], [-1]])),
    "scatter src": (lambda x, i: flow.scatter(x, 1, i, x), (ROWS, [[0], [2]]), (ROWS, [[3], [0]]),
                    (ROWS, [[0], [-1]])),
    "scatter_add": (lambda x, i: flow.scatter_add(x, 1, i, x), (ROWS, [[0], [2]]), (ROWS, [[3], [0]]),
                    (ROWS, [[0], [-1]])),
    "gather": (lambda x, i: flow.gather(x, 1, i), (ROWS, [[0], [2]]), (ROWS, [[3], [0]]),
               (ROWS, [[0], [-1]])),
    "index_select": (lambda x, i: flow.index_select(x, 0, i), (ROWS, [0, 1]), (ROWS, [0, 2]),
                     (ROWS, [-1, 0])),
    "index_add": (lambda x, i: flow.index_add(x, 0, i, x), (ROWS, [0, 1]), (ROWS, [0, 2]), (ROWS, [-1, 0])),
    "index_copy": (lambda x, i: flow.index_copy(x, 0, i, x), (ROWS, [0, 1]), (ROWS, [0, 2]), (ROWS, [-1, 0])),
    "index_fill": (lambda x, i: flow.index_fill(x, 0, i, 5.0), (ROWS, [0, -2]), (ROWS, [0, 2]),
                   (ROWS, [-3, 0])),
    "take": (flow.take, (ROWS, [0, -6]), (ROWS, [0, 6]), (ROWS, [-7, 0])),
    "cov fweights": (lambda x, w: flow.cov(x, fweights=w), (ROWS, [0, 1, 2]), (ROWS, [0, -1, 2])),
    "cov aweights": (lambda x, w: flow.cov(x, aweights=w), (ROWS, [0.0, 1.0, 2.0]), (ROWS, [0.0, -1.0, 2.0])),
    "take_along_dim": (lambda x, i: flow.take_along_dim(x, i, 1), (ROWS, [[0], [2]]), (ROWS, [[3], [0]]),
                       (ROWS, [[0], [-4]])),
    "index": (lambda x, i: x[i], (ROWS, [0, -2]), (ROWS, [0, 2]), (ROWS, [-3, 0])),
    "index of two axes": (lambda x, i: x[i, i], (ROWS, [0, -2]), (ROWS, [0, 2]), (ROWS, [-3, 0])),
    "index_put": (lambda x, i: flow.index_put(x, (i,), x[0]), (ROWS, [0, -2]), (ROWS, [0, 2]),
                  (ROWS, [-3, 0])),
    "in_top_k": (lambda y, x: flow.in_top_k(y, x, 1), ([0, 2], ROWS), ([0, 3], ROWS), ([-1, 0], ROWS)),
    "max_unpool1d": (lambda x, i: F.max_unpool1d(x, i, 2), ([[1.0, 2.0]], [[0, 3]]), ([[1.0, 2.0]], [[0, 4]]),
                     ([[1.0, 2.0]], [[-1, 3]])),
    "floor_divide": (lambda x, y: x // y, ([7, -7], [2, 3]), ([7, -7], [2, 0])),
    "number // x": (lambda y: 7 // y, ([2, 3],), ([2, 0],)),
    "div floor": (lambda x, y: flow.div(x, y, rounding_mode="floor"), ([7, -7], [2, 3]), ([7, -7], [2, 0])),
    "div trunc": (lambda x, y: flow.div(x, y, rounding_mode="trunc"), ([7, -7], [2, 3]), ([7, -7], [2, 0])),
    "remainder": (lambda x, y: x % y, ([7, -7], [2, 3]), ([7, -7], [2, 0])),
    "fmod": (flow.fmod, ([7, -7], [2, 3]), ([7, -7], [2, 0])),
    "remainder of int8": (lambda x, y: x.to(flow.int8) % y.to(flow.int8), ([7, -7], [2, 3]),
                          ([7, -7], [2, 0])),
    "ctc_loss": (lambda x, y, n, m: F.ctc_loss(x.unsqueeze(1), y, n, m), (ROWS, [[1]], [2], [1]),
                 (ROWS, [[1]], [3], [1]), (ROWS, [[3]], [2], [1]), (ROWS, [[1]], [2], [2])),
}
DISTRIBUTIONS = {
    "Normal": (normal_of, ([0.0, 1.0], [1.0, 2.0]), ([0.0, 1.0], [1.0, -2.0]), ([0.0, 1.0], [1.0, 0.0]),
               ([0.0, NAN], [1.0, 1.0])),
    "Bernoulli probs": (lambda p: D.Bernoulli(p).entropy(), ([0.0, 1.0],), ([0.0, 1.5],), ([NAN, 0.5],)),
    "Bernoulli value": (lambda p, x: D.Bernoulli(p).log_prob(x), ([0.5], [1.0]), ([0.5], [0.5])),
    "Categorical": (lambda p, x: D.Categorical(p).log_prob(x), (ROWS, [0, 2]), (ROWS, [0, 3]),
                    (ROWS, [-1, 0]), ([[1.0, -2.0, 3.0]], [0])),
    "Poisson": (lambda r, x: D.Poisson(r).log_prob(x), ([1.0], [2.0]), ([-1.0], [2.0]), ([1.0], [-2.0]),
                ([1.0], [0.5])),
    "Uniform": (lambda a, b, x: D.Uniform(a, b).log_prob(x), ([0.0], [1.0], [0.5]), ([1.0], [0.0], [0.5]),
                ([0.0], [1.0], [1.5])),
    "Dirichlet": (lambda a, x: D.Dirichlet(a).log_prob(x), ([1.0, 2.0], [0.25, 0.75]),
                  ([1.0, -2.0], [0.25, 0.75]), ([1.0, 2.0], [0.5, 0.75])),
    "MultivariateNormal": (lambda m, t: D.MultivariateNormal(m, scale_tril=t).log_prob(m),
                           ([0.0, 1.0], [[1.0, 0.0], [2.0, 3.0]]), ([0.0, 1.0], [[1.0, 4.0], [2.0, 3.0]]),
                           ([0.0, 1.0], [[1.0, 0.0], [2.0, -3.0]])),
}
CASES = [(name, k) for name, row in {**CHECKED, **DISTRIBUTIONS}.items() for k in range(len(row[2:]))]
of = {**CHECKED, **DISTRIBUTIONS}


class Graph(flow.nn.Graph):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def build(self, *inputs):
        return self.f(*inputs)


def to_tensors(arguments) -> list:
    return [flow.tensor(np.asarray(a)) if np.asarray(a).dtype.kind != "f" else flow.tensor(
        a) for a in arguments]


def run_in_training_graph(f, arguments):
    """Graph whose loss depends on the result."""
    w = flow.nn.Parameter(flow.ones(1))
    model = flow.nn.Module()
    model.w = w

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD([w], lr=1.0))

        def build(self, *inputs):
            loss = (f(*inputs).float() * self.model.w).sum()
            loss.backward()
            return loss

    try:
        return Train()(*to_tensors(arguments))
    except FlowError:
        assert w.item() == 1.0                             # the error is raised before any update
        raise


def as_job(f, arguments):
    inputs = to_tensors(arguments)
    flow.clear_default_session()

    def job(*blobs):
        return f(*blobs)

    form = [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD,
                              annotation=flow.typing.Numpy.Placeholder(tuple(x.shape), dtype=x.dtype))
            for i, x in enumerate(inputs)]
    job.__signature__ = inspect.Signature(form, return_annotation=flow.typing.Numpy)
    try:
        return flow.global_function()(job)(*[x.numpy() for x in inputs])
    finally:
        flow.clear_default_session()


def globally(f, arguments, sbp):
    place = flow.placement("cpu", [0, 1])
    whole = [x.to_global(place, flow.sbp.broadcast) for x in to_tensors(arguments)]
    y = f(*[x.to_global(sbp=sbp if x.shape[0] % 2 == 0 else flow.sbp.broadcast) for x in whole])
    return y.to_global(place, flow.sbp.broadcast).numpy()


MODES = {
    "eager": lambda f, a: f(*to_tensors(a)),
    "eager with gradients": lambda f, a: f(*[x.requires_grad_(x.is_floating_point()) for x in to_tensors(a)]),
    "no_grad": lambda f, a: flow.no_grad()(f)(*to_tensors(a)),
    "graph": lambda f, a: Graph(f)(*to_tensors(a)),
    "trained graph": run_in_training_graph,
    "vmap": lambda f, a: flow.vmap(f, randomness="different")(*[flow.stack([x, x]) for x in to_tensors(a)]),
    "global": lambda f, a: globally(f, a, flow.sbp.broadcast),
    "global, split": lambda f, a: globally(f, a, flow.sbp.split(0)),
    "global graph": lambda f, a: globally(Graph(f), a, flow.sbp.split(0)),
    "job": as_job,
}
JOBS = ("within", "within but NaN", "within int64", "within fractions", "within uint8", "require",
        "require alike", "one_hot", "remainder")          # functions that accept blobs of jobs
LOCAL = ("bernoulli_",)       # not supported for global tensors and vmap


def runs(name: str, mode: str) -> bool:
    return name in JOBS if mode == "job" else name not in LOCAL or mode in ("eager", "no_grad", "graph")


@pytest.fixture(autouse=True)
def two(world):
    world(2)


def refusal(mode, f, arguments):
    with pytest.raises(FlowError) as caught:
        MODES[mode](f, arguments)
    return caught.value


@pytest.mark.parametrize("name, mode", [(n, m) for n in of for m in MODES if runs(n, m)])
def test_good_values_pass(name, mode):
    f, good, *_ = of[name]
    MODES[mode](f, good)


@pytest.mark.parametrize("name, mode", [(n, m) for n in of for m in MODES if runs(n, m)])
def test_every_mode_refuses_bad_values(name, mode):
    f, _, *bad = of[name]
    for arguments in bad:
        want, got = refusal("eager", f, arguments), refusal(mode, f, arguments)
        if not isinstance(want, KernelError):  # errors of kernels that read indices have the name of the call
            assert (type(got), got.problem, got.expected) == (type(want), want.problem, want.expected)


def test_no_check_is_skipped_for_deferred_values():
    """An `if` that is false for tensors without values may only be in the function that checks them later as
    well.
    """
    found = set()
    for folder in ("tensor", "nn", "distributions", "autograd", "ops", "core", "utils"):
        for file in sorted((Path(flow.__file__).parent / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if (isinstance(node, ast.If) and needs_values(node.test)
                    and "raise " in ast.unparse(node.body)):
                    found.add(f"{folder}/{file.name}")
    assert found == {"distributions/distribution.py"}          # _with_check


def needs_values(test: ast.expr) -> bool:
    negations = [n for n in ast.walk(test) if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)]
    return any("is_lazy" in ast.unparse(n) for n in negations)
