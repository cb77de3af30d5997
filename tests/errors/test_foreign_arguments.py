"""Law of arguments: an invalid argument of a public function raises a flowedu error with the function, the
argument, and the user's line; an unknown keyword raises one with the nearest name. Never a bare TypeError.
"""
import ast
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu.diagnostics.function import PublicFunction
from flowedu.diagnostics.parameters import wants_tensor
from flowedu.errors import CallError, FlowError
from tensor.cases import BINARY, REDUCE, SHAPE, UNARY
from tensor.inputs import INPUTS, split

SPACES = {"flow": flow, "F": flow.nn.functional, "linalg": flow.linalg, "nn": flow.nn, "math": flow.math}
FOREIGN = (2, 2.5, "abc", None, [1, 2], {}, object())
FILL = {"dim": 0, "dim0": 0, "dim1": 1, "axis": 0, "shape": (2, 3), "size": (2, 3), "dtype": flow.float32}
NO_CALL = {"save", "load", "fork_rng", "set_num_threads", "set_cache", "watch", "watch_diff",
           "check_number"}                                  # process-wide side effects, or internal
FUNCTIONS = {f"{space}.{name}": f for space, module in SPACES.items()
             for name, f in sorted(vars(module).items())
             if isinstance(f, PublicFunction) and name[0] != "_" and name not in NO_CALL}
X = flow.ones(2, 3)


def calls_with(f, foreign):
    """Yield (parameter, args, kwargs): calls of f in which one tensor is replaced by a foreign object."""
    parameters = inspect.signature(f).parameters.values()
    for p in parameters:
        if p.kind is not p.VAR_POSITIONAL and not wants_tensor(p):
            continue
        args, kwargs = [], {}
        for q in parameters:
            if q is not p and (q.default is not q.empty or q.kind in (q.VAR_KEYWORD, q.VAR_POSITIONAL)):
                continue
            value = (foreign if q is p else [X, X] if q.name == "tensors" else X if wants_tensor(q)
                     else FILL.get(q.name, 1))
            if q.kind in (q.POSITIONAL_ONLY, q.VAR_POSITIONAL):
                args.append(value)
            else:
                kwargs[q.name] = value
        yield p.name, args, kwargs


def test_the_public_functions_are_listed():
    assert {"flow.hypot", "F.relu", "linalg.solve", "flow.any", "nn.relu", "math.add"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 500


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_a_non_tensor_is_refused_by_argument_name_or_accepted(name):
    for foreign in FOREIGN:
        for parameter, args, kwargs in calls_with(FUNCTIONS[name], foreign):
            try:
                y = FUNCTIONS[name](*args, **kwargs)
            except FlowError as e:
                assert e.problem and e.at.startswith(
                    "test_foreign_arguments.py"), f"{name}({parameter}={foreign!r}): {e}"
            else:
                assert y is not foreign or foreign in (
                    2, 2.5) or name == "flow.cast_to_current_logical_view", \
                    f"{name}({parameter}={foreign!r}) gives it back"


def collect_calls():
    """Return the `m.f(...)` calls in the tables of tests/tensor as (text, function, syntax tree)."""
    for case in UNARY + BINARY + REDUCE + SHAPE:
        text, _ = split(case)
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
            home = ast.unparse(tree.func.value)
            if home in ("m", "m.linalg"):
                yield text, tree


WRITTEN = dict(collect_calls())
TAKES_NUMBERS = "where add sub rsub mul div"                # some of their arguments may be numbers


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.filterwarnings("ignore")
def test_the_error_names_the_argument(text):
    """The call is valid except for one tensor; the error names that argument, or the type of the received
    object.
    """
    tree = WRITTEN[text]
    name = tree.func.attr
    values = {"m": flow, **{n: flow.tensor(a) for n, a in INPUTS.items()}}
    f = eval(ast.unparse(tree.func), values)
    for i, node in enumerate(tree.args):
        if not isinstance(node, ast.Name) or node.id not in INPUTS:
            continue
        for foreign in ("'abc'", "{}"):
            args = [ast.unparse(a) for a in tree.args]
            args[i] = foreign
            wrong = f"{ast.unparse(tree.func)}({', '.join([*args, *map(ast.unparse, tree.keywords)])})"
            with pytest.raises(FlowError) as caught:
                eval(wrong, values)
            e = caught.value
            both = [f] if f.choice is None else [f.choice.older, f.choice.newer]
            words = [*(name for g in both for name in inspect.signature(g).parameters), "list"]
            assert name in e.problem, f"{wrong}: does not name the function: {e}"
            assert any(w in e.problem for w in words), f"{wrong}: does not name the argument: {e}"
            assert e.expected and e.got and e.fix, f"{wrong}: says too little: {e}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_unknown_keyword_is_refused_with_the_nearest_name(name):
    """Tried with one letter of each parameter name omitted."""
    f = FUNCTIONS[name]
    parameters = inspect.signature(f).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for p in parameters.values():
        wrong = p.name[:-2] + p.name[-1]
        if len(p.name) < 4 or wrong in parameters or p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            continue
        with pytest.raises(CallError) as caught:
            f(**{wrong: 1})
        e = caught.value
        assert (repr(
             wrong) in e.problem and p.name in e.fix and e.expected
                and wrong in e.got), f"{name}({wrong}=): {e}"


def test_the_users_own_errors_are_left_alone():
    """Functions that call user code pass its exceptions on."""
    def wrong(x):
        return x.no_such_thing

    Y = flow.ones(2, dtype=flow.float64, requires_grad=True)
    for call in (lambda: flow.autograd.functional.jacobian(wrong, X),
                 lambda: flow.autograd.gradcheck(wrong, Y)):
        with pytest.raises(AttributeError, match="no_such_thing"):
            call()
    with pytest.raises(TypeError, match="own"):
        flow.nn.Module().apply(lambda m: (_ for _ in ()).throw(TypeError("own")))


def test_a_wrapped_function_is_still_a_function():
    import copy
    import pickle
    f = flow.nn.functional.relu
    assert f.__name__ == "relu" and "max(x, 0)" in f.__doc__
    assert list(inspect.signature(f).parameters) == ["input", "inplace"]
    assert copy.deepcopy(f) is f and copy.copy(f) is f and callable(f) and inspect.isroutine(f)
    assert pickle.loads(pickle.dumps(f))(X).shape == X.shape
    assert list(inspect.signature(flow.nn.Linear).parameters)[:2] == ["in_features", "out_features"]
    assert "skin" not in repr(f) and flow.Tensor.sum(X).item() == X.sum().item() == 6
    assert np.array_equal(list(map(f, [X]))[0].numpy(), X.numpy())


@pytest.mark.parametrize(("call", "place"), [
    (lambda: flow.hypot(X, "a"), "other"), (lambda: flow.lerp(X, X, "w"), "weight"),
    (lambda: flow.where(X > 0, X, "a"), "other"),
    (lambda: flow.cat([X, "a"]), r"tensors\[1\]"), (lambda: flow.einsum("ij,jk", X, "b"), r"operands\[1\]"),
    (lambda: flow.cross(X, 5), "other"), (lambda: flow.nn.functional.conv2d(flow.ones(1, 1, 3, 3), [1]),
                                          "weight")])
def test_the_named_argument_is_the_wrong_one(call, place):
    with pytest.raises(FlowError, match=f": {place} is not a tensor"):
        call()


def test_an_error_in_a_user_function_is_unchanged():
    """Even if its text resembles an error of the calling function."""
    def plain(t):
        return t

    def wrong(t):
        return plain(t, eps=1)

    with pytest.raises(TypeError, match="unexpected keyword argument 'eps'") as caught:
        flow.autograd.gradcheck(wrong, (flow.ones(2, dtype=flow.float64, requires_grad=True),), eps=1e-6)
    assert type(caught.value) is TypeError
