"""Law: functions, losses, and layers of nn are finite wherever PyTorch's results and gradients are: at zeros,
at ties, for empty batches and batches of one.
"""
import numpy as np
import pytest

import flowedu as flow
from common import few
from flowedu.errors import FlowError

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

from . import peers  # noqa: E402
from .cases import LAYERS, array  # noqa: E402
from .test_functional_against_torch import FUNCTIONS  # noqa: E402
from .test_losses_against_torch import LOSSES  # noqa: E402

NAMES = "xyzuvw"
IGNORED = np.full(6, -100)
OTHERS = [
    ("F.cross_entropy(x, y, reduction='sum')", (6, 4), IGNORED), ("F.cross_entropy(x, y)", (6, 4), IGNORED),
    ("F.nll_loss(x, y, reduction='none')", (6, 4), IGNORED), ("F.nll_loss(x, y)", (6, 4), IGNORED),
    ("F.cross_entropy(x, y, label_smoothing=0.1)", (6, 4), IGNORED),
    ("F.gumbel_softmax(x * 0 - float('inf'), hard=True)", (2, 3)),
    ("F.softmax(x.masked_fill(y, -1e30), -1)", (2, 3), np.array([[True] * 3, [False, True, False]])),
    ("F.log_softmax(x.masked_fill(y, -1e30), -1)", (2, 3), np.array([[True] * 3, [False, True, False]])),
    ("F.scaled_dot_product_attention(x, y, z, u)", (2, 3, 4), (2, 6, 4), (2, 6, 5),
     np.arange(18).reshape(3, 6) > 9),
    ("F.scaled_dot_product_attention(x, x, x, y)", (1, 2, 4), np.array([[0, 0], [-np.inf, -np.inf]])),
    ("F.cosine_similarity(x, y)", (4, 5), (4, 5)), ("F.pairwise_distance(x, x)", (4, 5)),
    ("F.pairwise_distance(x, y, eps=0.0)", (4, 5), (4, 5)), ("F.normalize(x, p=0.5)", (3, 4)),
]
CALLS = [*FUNCTIONS, *OTHERS, *[(text.format(f", reduction='{r}'"), *specs) for text, *specs in LOSSES
                                for r in ("mean", "none")]]


def fill_floats_with(number):
    """Return a function that replaces drawn floats by this value, and positive ones by its magnitude."""
    def change(spec, a):
        kind = spec[0] if isinstance(spec, tuple) and spec and isinstance(spec[0], str) else "normal"
        if a.dtype.kind != "f" or isinstance(spec, np.ndarray) or kind not in ("normal", "positive", "unit"):
            return a
        return np.full_like(a, number if kind == "normal" else abs(number))
    return change


def first(n):
    """Keep the first n samples of a batch; vectors stay, because they are weights and the like."""
    return lambda spec, a: a[:n] if a.ndim > 1 and a.shape[0] == 2 else a


CHANGES = {**{str(n): fill_floats_with(n) for n in (0.0, 1.0, 0.5, -1.0, 1e-300)}, "a batch of one": first(1),
           "no batch": first(0)}


def make_leaves(specs, change, module):
    out = []
    for i, spec in enumerate(specs):
        x = module.tensor(change(spec, array(spec, i)))
        out.append(x.requires_grad_() if x.dtype.is_floating_point else x)
    return out


def answers(out, xs, module):
    """Return results and gradients by name."""
    out, total = peers.flatten_results(out), None
    for i, y in enumerate(out):
        if y.requires_grad:
            part = (y * module.tensor(np.random.default_rng(i + 99).standard_normal(tuple(y.shape)))).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    found = {f"result {i}": y for i, y in enumerate(out)} | {f"gradient of {n}": x.grad
                                                             for n, x in zip(NAMES, xs)}
    return {n: y.detach().numpy() for n, y in found.items() if y is not None}


def called(module, text, specs, change):
    xs = make_leaves(specs, change, module)
    return answers(eval(text, {"F": module.nn.functional, "flow": module, **dict(zip(NAMES, xs))}),
                   xs, module)


def applied(module, layer, specs, change):
    xs = make_leaves(specs, change, module)
    out = answers(layer(*xs), xs, module)
    return out | {n: p.grad.numpy() for n, p in layer.named_parameters() if p.grad is not None}


def faults(rows):
    """Return the names whose flowedu result is not finite while PyTorch's is. Entries are (name, ours,
    theirs) with functions of no argument.
    """
    wrong = {}
    for name, ours, theirs in rows:
        try:
            want = theirs()
        except Exception:
            continue                                             # PyTorch raises
        try:
            got = ours()
        except FlowError as e:
            wrong[name] = str(e)
            continue
        for what in want.keys() & got.keys():
            x, y = got[what], want[what]
            if x.shape != y.shape or y.dtype.kind == "f" and (np.isfinite(y) & ~np.isfinite(x)).any():
                wrong[name] = what
    return wrong


@pytest.mark.parametrize("numbers", few(CHANGES, {"0.0", "no batch"}.__contains__))
def test_functions_of_flat_inputs_are_finite_where_pytorchs_are(numbers):
    def bind(module, *call):
        return lambda: called(module, *call, CHANGES[numbers])

    assert faults((text, bind(flow, text, specs), bind(torch, text, specs)) for text, *specs in CALLS) == {}


def small(specs):
    return sum(array(s, 0).size for s in specs) < 700            # large cases have small counterparts


@pytest.mark.parametrize("numbers", few(CHANGES, {"0.0", "no batch"}.__contains__))
def test_layers_of_flat_inputs_are_finite_where_pytorchs_are(numbers):
    asked, rows = lambda module, *call: lambda: applied(module, *call, CHANGES[numbers]), []
    for text, *specs in LAYERS:
        specs = [s for s in specs if not isinstance(s, (str, dict))]
        if small(specs):
            ours, theirs = peers.modules(text)
            rows.append((text, asked(flow, ours, specs), asked(torch, theirs, specs)))
    assert faults(rows) == {}
