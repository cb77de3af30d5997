"""A call written for OneFlow 0.9 has the same meaning here, is an error, or has a row below with a reason.

A positional argument with another name must not silently be used as a different argument. Names, and
therefore the errors, may differ: for a name of two generations, both OneFlow's and PyTorch's argument names
are accepted.
"""
import ast
import importlib
from pathlib import Path

import pytest
import pytorch_signatures

import flowedu as flow
from flowedu import mock
from flowedu.errors import FlowError
from flowedu.mock.differences import FACES

LINES = [t for t in (Path(__file__).parent / "oneflow_signatures.txt").read_text("utf-8").splitlines()
         if t[0] != "#"]
# {OneFlow's argument: other names for it}
WORDS = {"x": "input x1 a values tensors like params condition logits A",
         "input": "x a values tensors like condition",
         "inputs": "tensors input", "a": "input", "b": "mat2 other", "y": "x2 other", "A": "x",
         "other": "tensor src",
         "label": "target", "logits": "input", "alpha": "negative_slope weight", "shape": "size",
         "index": "indices",
         "update": "updates", "values": "input", "is_train": "mode", "state": "new_state",
         "tensor": "x params",
         "self": "input", "target": "other", "out_shapes": "out_shape", "out_dtypes": "out_dtype"}
# pairs of defaults with the same meaning
ALIKE = {("None", "()"), ("None", "0"), ("None", "False"), ("None", "[]"), ("None", "''"), ("None", "0.0"),
         ("None", "-1"), ("'fro'", "None"), ("None", "'fro'"), ("'cpu'", "None"), ("()", "None"),
         ("False", "None"),
         ("0", "None"), ("-1", "None"), ("None", "2"), ("None", "default_generator"),
         ("None", "flowedu.float32")}
# names whose positions or defaults differ, with reasons
DIFFERS = {
    "max min": "a tensor in dim's place is taken for other",
    "pow": "the second way's names stand in the wrong order there",
    "randint randint_like": "one number is the upper end", "transpose": "flow.transpose takes both",
    "slice cast pad": "OneFlow 0.4's words too: what comes by place is told by its type",
    "nn.CrossEntropyLoss nn.NLLLoss nn.SmoothL1Loss":
        "in size_average's place a number is refused, a word is reduction",
    "nn.functional.binary_cross_entropy_with_logits nn.functional.kl_div nn.functional.smooth_l1_loss":
        "a reduction is a word, and what comes in its place is none",
    "unique": "a dtype in dim's place is refused",
    "optim.Adam optim.AdamW optim.SGD": "fused changes no number",
    "arange nn.utils.rnn.PackedSequence": "what has no default there is refused",
    "utils.data.DataLoader": "flow.default_generator",
}
_ROWS = {n: why for names, why in DIFFERS.items() for n in names.split()}
# each of these raises an error with a replacement
REFUSED = ["isclose(x, x, 1e-3)", "allclose(x, x, 1e-3)", "nn.functional.max_pool1d(x, 2, 1, 0, 1, True)",
           "nn.functional.gumbel_softmax(x, 1.0, 1)", "nn.CrossEntropyLoss(None, 0)",
           "nn.SmoothL1Loss('sum', 0.5)",
           "nn.functional.kl_div(x, x, True)", "nn.functional.smooth_l1_loss(x, x, 0.5)",
           "unique(x, True, False, False, int)",
           "nn.functional.binary_cross_entropy_with_logits(x, x, x, x)", "sum(x=x)", "relu(x, inplace=True)"]


def _functions() -> dict:
    """Return the functions for the names of the list. For a name of both generations, return the function
    that accepts tensors.
    """
    both = FACES[0].names.split()
    with mock.enable("torch"):
        torch = importlib.import_module("torch")
        found = {n: getattr(torch, n) for n in both if "." not in n and hasattr(torch, n)}
    for line in LINES:
        name = line.partition("(")[0]
        if name not in found:
            x = flow
            for part in name.split("."):
                x = getattr(x, part, None)
            found[name] = x
    return {n: f for n, f in found.items() if callable(f)}


def _theirs(line: str) -> list[tuple[str, bool, str | None]]:
    """Return (name, True if positional, default as written) of each argument."""
    given = ast.parse(f"def f{line[line.index('('):]}: pass").body[0].args
    by_place = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(by_place) - len(given.defaults)) + given.defaults
    kinds = (by_place, defaults, True), (given.kwonlyargs, given.kw_defaults, False)
    return [(a.arg, place, d) for arguments, ds, place in kinds for a, d in zip(arguments, ds)]


def _value(node: ast.expr) -> object:
    try:
        return eval(ast.unparse(node), {"flow": flow, "oneflow": flow})       # the list is ours
    except NameError:
        return ast.unparse(node)


def misfits(ours: list, theirs: list) -> list[str]:
    """Return the arguments of a OneFlow call that would be used as different ones here, and defaults that
    differ.
    """
    by_name, found = {a.name: a for a in ours}, []
    places = [a.name for a in ours if a.kind == "place"]
    if not any(a.kind == "*" for a in ours):
        wanted = [n for n, place, _ in theirs if place]
        found += [f"{n}'s place is {p}'s" for n, p in zip(wanted, places) if n != p
                  and p not in WORDS.get(n, "").split()]
    for n, _, default in theirs:
        if default is not None and n in by_name:
            a, b = (tuple(v) if isinstance(v, list) else v for v in (by_name[n].default, _value(default)))
            pair = tuple(str(v) if isinstance(v, str) and "_" in v else repr(v) for v in (a, b))
            if a != b and pair not in ALIKE:
                found.append(f"{n}={pair[0]}, there {pair[1]}")
    return found


def test_no_call_of_oneflow_has_another_meaning():
    wrong, used, compared = [], set(), 0
    for name, f in (functions := _functions()).items():
        for line in (t for t in LINES if t.partition("(")[0] == name):
            ours = pytorch_signatures.of_python(f)[name.startswith("Tensor."):]
            compared += 1
            for what in misfits(ours, _theirs(line)):
                used.add(name)
                if name not in _ROWS:
                    wrong.append(f"{name}: {what}: {line}")
    assert not wrong, "\n".join(wrong)
    assert compared > 550 and len(functions) > 450
    assert _ROWS.keys() - used == set(), "rows without a difference"


def test_misfits_finds_differences():
    place = pytorch_signatures.Argument
    ours = [place("input", "place"), place("rtol", "place", 1e-5), place("atol", "place", 1e-8)]
    turned = _theirs("f(input, atol=1e-08, rtol=1e-05)")
    assert misfits(ours, turned) == ["atol's place is rtol's", "rtol's place is atol's"]
    assert misfits(ours, _theirs("f(x, *, rtol=1e-04)")) == ["rtol=1e-05, there 0.0001"]
    assert misfits(ours[:1], _theirs("f(input, atol=1e-08)")) == []           # an extra argument is an error


@pytest.mark.parametrize("call", REFUSED)
def test_positional_differences_are_refused(call):
    with pytest.raises(FlowError) as caught:
        eval(f"flow.{call}", {"flow": flow, "x": flow.ones(2, 3), "int": flow.int32})
    assert caught.value.fix


def test_a_string_in_the_reduction_position_is_the_reduction():
    x, y = flow.tensor([1.0, 2.0]), flow.tensor([2.0, 4.0])
    for loss in (flow.nn.MSELoss, flow.nn.L1Loss, flow.nn.SmoothL1Loss):
        assert loss("sum")(x, y) == loss(reduction="sum")(x, y) != loss()(x, y)
    assert flow.nn.MSELoss("none")(x, y).shape == (2,)
