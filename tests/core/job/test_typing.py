"""flowedu.typing: placeholders, job signatures, return types, and the arrays that a call accepts."""
# Old scripts write the generics of typing.
# ruff: noqa: UP006, UP007, UP045
import typing
from collections import namedtuple
from typing import Dict, List, Optional, Tuple  # noqa: UP035

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu.typing as tp
from flowedu.core.values import dtype as dt
from flowedu.core.values import placeholder as ph
from flowedu.core.values import signature as sg
from flowedu.errors import CheckError, DTypeError, UnsupportedError
from flowedu.oneflow04 import mirrored
from flowedu.oneflow04.job import annotation as an
from flowedu.oneflow04.job import arguments as ag
from flowedu.oneflow04.job import call_signature as js

X = tp.Numpy.Placeholder((4, 3))
BATCH = 7  # BATCH is looked up by string annotations


class Blob:
    def __init__(self, is_dynamic=False):
        self.is_dynamic = is_dynamic


def is_blob(x):
    return isinstance(x, Blob)


def raises(error, *words):
    """Expect an error of this kind with subject, expected, got, and fix, whose text contains all these
    words.
    """
    class Check:
        def __enter__(self):
            self.context = pytest.raises(error)
            self.info = self.context.__enter__()
            return self

        def __exit__(self, *exc):
            result = self.context.__exit__(*exc)
            e = self.info.value
            assert e.problem and e.expected and e.got and e.fix, f"incomplete message: {e}"
            for word in words:
                assert word in str(e), f"{word!r} is not in: {e}"
            return result
    return Check()


def job(annotations, **defaults):
    """Return a function `job` with these annotations (None: unannotated); "return" is the return
    annotation.
    """
    names = [n for n in annotations if n != "return"]
    space = {}
    exec(f"def job({', '.join(n + (' = D[' + repr(n) + ']' if n in defaults else '') for n in names)}): pass",
         {"D": defaults}, space)
    space["job"].__annotations__ = {n: a for n, a in annotations.items() if a is not sg.MISSING}
    return space["job"]


def returning(annotation):
    return sg.check_signature(job({"return": annotation})).returns


# --- placeholders
# ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, base, dynamic, tensor_list", [
    (tp.Numpy, ph.FixedTensorDef, False, False), (tp.ListNumpy, mirrored.MirroredTensorDef, True, False),
    (tp.ListListNumpy, mirrored.MirroredTensorListDef, True, True)])
def test_a_placeholder_is_a_class_that_makes_the_matching_definition(kind, base, dynamic, tensor_list):
    p = kind.Placeholder((5, 2), dt.int32, batch_axis=-1)
    assert isinstance(p, type) and (p.shape, p.dtype, p.batch_axis) == ((5, 2), dt.int32, 1)
    assert p is not kind.Placeholder((5, 2), dt.int32), "each call makes a class of its own"
    d, e = p.NewInputBlobDef(), p.NewInputBlobDef()
    assert type(d) is base and (d.shape, d.dtype, d.numpy_dtype) == ((5, 2), dt.int32, np.int32)
    assert (d.is_dynamic, d.is_tensor_list) == (dynamic, tensor_list)
    assert d.op_name.startswith("Input_") and d.op_name != e.op_name
    assert d.logical_blob_name == d.unique_name == d.op_name + "/out"
    assert repr(p) == f"{kind.__name__}.Placeholder((5, 2), int32)"


def test_distribute_is_kept_and_shows_in_the_unique_name():
    class Split:
        suffix = ":S0"

    d = ph.FixedTensorDef((2,)).with_distribute(Split)
    assert d.distribute is Split and d.unique_name == d.op_name + "/out:S0"


@pytest.mark.parametrize("shape, fix", [([4, 3], "(4, 3)"), (4, "(4,)"), (None, "")])
def test_a_shape_that_is_no_tuple_fails_while_def_executes(shape, fix):
    with raises(AssertionError, "tuple", fix):
        def unused(x: tp.Numpy.Placeholder(shape)): ...


@pytest.mark.parametrize("dim", [0, -1, np.int64(3), 2.0, True, "3", None])
def test_a_size_that_is_no_positive_int_fails_at_compile_only(dim):
    signature = sg.check_signature(job({"x": tp.Numpy.Placeholder((4, dim))}))
    with raises(AssertionError, repr(dim)):
        signature.input_defs()


def test_dtype_and_batch_axis_are_checked_at_once():
    with pytest.raises(TypeError):
        tp.Numpy.Placeholder((2,), "no such type")
    with raises(NotImplementedError, "tensor_buffer"):
        tp.Numpy.Placeholder((2,), dt.tensor_buffer)
    for axis in (2, -3, 0.5):
        with raises(AssertionError, "batch_axis"):
            tp.Numpy.Placeholder((2, 2), batch_axis=axis)
    assert tp.Numpy.Placeholder((2, 2), batch_axis=None).batch_axis is None
    assert tp.Numpy.Placeholder(()).batch_axis is None


# --- decoration
# ------------------------------------------------------------------------------------------------------

def test_a_signature_in_full():
    def job(x: tp.Numpy.Placeholder((4, 3)),
            pair: Tuple[tp.Numpy.Placeholder((4,), dt.int32), Tuple[tp.ListNumpy.Placeholder((2,))]]
            ) -> Tuple[tp.Numpy, Dict[str, tp.ListNumpy]]: ...

    s = sg.check_signature(job)
    assert (s.name, s.names) == ("job", ("x", "pair"))
    a, (b, (c,)) = s.input_defs()
    assert [type(d) for d in (a, b, c)] == [ph.FixedTensorDef, ph.FixedTensorDef, mirrored.MirroredTensorDef]
    assert [d.shape for d in (a, b, c)] == [(4, 3), (4,), (2,)] and b.dtype is dt.int32
    assert s.returns == an.TupleOf((tp.Numpy, an.DictOf(str, tp.ListNumpy)))
    assert s.input_defs()[0].op_name != a.op_name, "every compile gets fresh definitions"


def test_builtin_generics_equal_typing_generics():
    old = job({"x": Tuple[X, X], "return": Tuple[tp.Numpy, List[tp.Numpy], Dict[int, tp.Numpy]]})
    new = job({"x": tuple[X, X], "return": tuple[tp.Numpy, list[tp.Numpy], dict[int, tp.Numpy]]})
    assert sg.check_signature(old) == sg.check_signature(new)


def test_no_parameters_and_no_annotations_are_fine():
    s = sg.check_signature(lambda: None)
    assert s.input_defs() == () and s.returns is sg.MISSING


@pytest.mark.parametrize("wrong, words", [
    (tp.Numpy, "Numpy.Placeholder("), (tp.ListNumpy, "tp.ListNumpy.Placeholder("), (np.ndarray, "ndarray"),
    (List[X], "Tuple"), (Dict[str, X], "Tuple"), (list[X], "Tuple"), (int, "int"), (None, "Placeholder"),
    (Optional[X], "Placeholder"), (Tuple[tp.Numpy, X], "Numpy"), (Tuple[X, ...], "open length"), (5, "5"),
    (tp.Numpy.Placeholder, "Placeholder("), (tp.Callback[X], "Callback"), (tp.Bundle[tp.Numpy], "Bundle"),
    (np.zeros(3), "Placeholder")])
def test_a_parameter_annotation_of_the_wrong_kind_is_refused(wrong, words):
    with raises(NotImplementedError, "parameter x", words):
        sg.check_signature(job({"x": wrong}))


@pytest.mark.parametrize("wrong", [
    X, int, np.ndarray, Optional[tp.Numpy], typing.Union[tp.Numpy, tp.ListNumpy], Tuple[None], List[X],
    Tuple[tp.Numpy, ...], tp.Callback[tp.Bundle[tp.Numpy]], tp.Callback[None], List[tp.Bundle[tp.Numpy]],
    typing.Set[tp.Numpy], tp.PyStructCompatibleToBlob, "no such name", 5, np.zeros(3), typing.Any])
def test_a_return_annotation_of_the_wrong_kind_is_refused(wrong):
    with raises(NotImplementedError, "invalid" if wrong is not Tuple[tp.Numpy, ...] else "open length"):
        returning(wrong)


@pytest.mark.parametrize("bare", [Tuple, List, Dict, tuple, list, dict, tp.Callback, tp.Bundle,
                                  Tuple[()], Tuple[List], tp.Callback[Dict], list[tp.Numpy, tp.Numpy]])
def test_a_container_without_its_types_is_refused(bare):
    with raises(AssertionError, "cannot be omitted"):
        returning(bare)


def test_a_bare_tuple_parameter_is_refused():
    for bare in (Tuple, tuple, Tuple[tuple]):
        with raises(AssertionError, "cannot be omitted"):
            sg.check_signature(job({"x": bare}))


@pytest.mark.parametrize("leaf", [X, List[tp.Numpy], int, None])
def test_a_bundle_holds_leaf_types_only(leaf):
    with raises(AssertionError, "Bundle"):
        returning(tp.Bundle[leaf])


def test_star_parameters_are_refused():
    def args(*xs: X): ...
    def kwargs(**xs: X): ...
    def keyword(*, x: X): ...
    def positional(x: X, /): ...
    for f in (args, kwargs, keyword, positional):
        with raises(AssertionError, "*args", f.__name__):
            sg.check_signature(f)


def test_typing_check_can_be_made_strict():
    js.enable_typing_check()
    try:
        with raises(NotImplementedError, "parameter x"):
            sg.check_signature(job({"x": sg.MISSING, "return": None}))
        with raises(NotImplementedError, "return annotation"):
            sg.check_signature(job({"x": X}))
        sg.check_signature(job({"x": X, "return": None}))
    finally:
        js.enable_typing_check(False)
    sg.check_signature(job({"x": sg.MISSING}))


def test_parameters_described_by_default_values():
    a, b = ph.FixedTensorDef((2, 5)), mirrored.MirroredTensorDef((3,), dt.int32)
    s = sg.check_signature(job({"x": sg.MISSING, "y": sg.MISSING}, x=a, y={"u": [b, (a,)]}))
    x, y = s.input_defs()
    assert type(x) is ph.FixedTensorDef and x is not a and x.shape == (2, 5)
    assert (list(y) == ["u"] and type(y["u"]) is list and type(y["u"][1]) is tuple
            and y["u"][0].dtype is dt.int32)


def test_mixed_or_missing_descriptions_fail_at_compile():
    mixed = sg.check_signature(job({"x": X, "y": sg.MISSING}, y=ph.FixedTensorDef((2,))))
    with raises(NotImplementedError, "All parameters of global function should be annotated", "y"):
        mixed.input_defs()
    for default in ({}, {"y": 0.1}):
        s = sg.check_signature(job({"y": sg.MISSING}, **default))
        with raises(NotImplementedError, "y: tp.Numpy.Placeholder"):
            s.input_defs()


# --- annotations that are strings
# ------------------------------------------------------------------------------------

def test_string_annotations_see_globals_locals_and_the_closure():
    rows = 3
    f = job({"x": "tp.Numpy.Placeholder((BATCH, rows))", "y": tuple["X", X],
             "return": "Tuple[tp.Numpy, tp.Numpy]"})
    f.__globals__.update(globals())
    s = sg.check_signature(f)
    assert s.input_defs()[0].shape == (7, rows) and s.input_defs()[1][0].shape == (4, 3)
    assert s.returns == an.TupleOf((tp.Numpy, tp.Numpy))

    def make(columns):
        def job(x: "tp.Numpy.Placeholder((2, columns))") -> "None":
            return columns
        return job

    s = sg.check_signature(make(9))
    assert s.input_defs()[0].shape == (2, 9) and s.returns is None


def test_string_annotations_keep_the_error_classes():
    with raises(NotImplementedError, "nowhere"):
        sg.check_signature(job({"x": "nowhere.Numpy"}))
    for wrong in ("tp.Numpy", "int", "List[X]"):
        f = job({"x": wrong})
        f.__globals__.update(globals())
        with raises(NotImplementedError, "parameter x"):
            sg.check_signature(f)
    for wrong, error in (("tp.Numpy.Placeholder([2])", CheckError), ("tp.Numpy.Placeholder((2,), 'no')",
                                                                     DTypeError)):
        f = job({"x": wrong})
        f.__globals__.update(globals())
        with pytest.raises(error):
            sg.check_signature(f)


# --- values returned by a body
# ---------------------------------------------------------------------------------------

LEAF = st.sampled_from(an.LEAVES)
VALUES = st.recursive(LEAF, lambda inner: st.one_of(
    st.lists(inner, min_size=1, max_size=3).map(lambda xs: Tuple[tuple(xs)]),
    inner.map(lambda x: List[x]), inner.map(lambda x: Dict[str, x])), max_leaves=6)
RETURNS = st.one_of(VALUES, VALUES.map(lambda v: tp.Callback[v]))


def example_of(annotation, draw):
    """Draw a returned value that fits the annotation tree."""
    if isinstance(annotation, an.TupleOf):
        return tuple(example_of(a, draw) for a in annotation.items)
    if isinstance(annotation, an.ListOf):
        return [example_of(annotation.item, draw) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(annotation, an.DictOf):
        return {k: example_of(annotation.item, draw) for k in draw(st.sets(st.sampled_from("abc")))}
    return Blob() if annotation is not None else None



@given(RETURNS, st.data())
def test_matching_values_are_accepted_and_convert_keeps_their_structure(annotation, data):
    returns = returning(annotation)
    inner = returns.item if isinstance(returns, an.CallbackOf) else returns
    value = example_of(inner, data.draw)
    js.check_return(value, returns, is_blob, "job")
    seen = []

    def leaf(blob, kind):
        assert kind in an.LEAVES
        seen.append(blob)
        return ("leaf", blob)

    def expected(v):
        if isinstance(v, Blob):
            return ("leaf", v)
        return {k: expected(x) for k, x in v.items()} if type(v) is dict else type(v)(map(expected, v))

    result = sg.convert(value, returns, leaf)
    assert result == expected(value)
    assert seen == sg.leaves(value)
    assert isinstance(value, Blob) or result is not value


def spoil(value):
    """Draw every variant of `value` in which one place holds a value that no annotation allows there."""
    if isinstance(value, tuple):
        yield list(value)
        yield value + (Blob(),)
        yield value[:-1]
        for i, v in enumerate(value):
            yield from ((*value[:i], bad, *value[i + 1:]) for bad in spoil(v))
    elif isinstance(value, list):
        yield tuple(value)
        for i, v in enumerate(value):
            yield from ([*value[:i], bad, *value[i + 1:]] for bad in spoil(v))
    elif isinstance(value, dict):
        yield list(value.values())
        yield {**value, 5: Blob()}
        for k, v in value.items():
            yield from ({**value, k: bad} for bad in spoil(v))
    else:
        yield from (None, 1.0, np.zeros(2), "text", [value], {"a": value}, (value,))


@given(VALUES, st.data())
def test_a_value_that_differs_in_one_place_is_refused(annotation, data):
    returns = returning(annotation)
    value = example_of(returns, data.draw)
    for bad in spoil(value):
        with raises(AssertionError, "job", "return annotation"):
            js.check_return(bad, returns, is_blob, "job")


NESTS = st.recursive(st.builds(Blob), lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from("abc"), inner, max_size=3)), max_leaves=6)


@given(NESTS, st.sampled_from([sg.MISSING, an.BundleOf(tp.Numpy)]))
def test_bundle_and_no_annotation_take_any_nesting_and_keep_it(nest, returns):
    js.check_return(nest, returns, is_blob, "job")
    copy = sg.convert(nest, returns, lambda blob, kind: blob)
    assert copy == nest and type(copy) is type(nest)
    for bad in ([nest, 1.0], {"a": (nest, None)}, (np.zeros(2), nest), {1: "text"},
                {nest if is_blob(nest) else 1}):
        with raises(NotImplementedError, "RemoteBlob"):
            js.check_return(bad, returns, is_blob, "job")


def test_errors_name_the_place_in_the_nesting():
    returns = returning(Tuple[tp.Numpy, Dict[str, List[tp.Numpy]]])
    with raises(AssertionError, "result[1]['loss'][2]", "float 0.5"):
        js.check_return((Blob(), {"loss": [Blob(), Blob(), 0.5]}), returns, is_blob, "train_job")


def test_none_is_returned_only_where_it_is_annotated():
    js.check_return(None, None, is_blob, "job")
    js.check_return(None, sg.MISSING, is_blob, "job")
    with raises(AssertionError, "None"):
        js.check_return(Blob(), None, is_blob, "job")
    with raises(AssertionError, "return"):
        js.check_return(None, tp.Numpy, is_blob, "job")
    with raises(NotImplementedError):
        js.check_return(None, an.BundleOf(tp.Numpy), is_blob, "job")
    assert sg.convert(None, None, None) is None
    assert sg.leaves(None) == []


def test_a_dynamic_blob_is_no_numpy():
    for returns in (tp.Numpy, an.CallbackOf(tp.Numpy), an.BundleOf(tp.Numpy)):
        with raises(AssertionError, "dynamic", "ListNumpy"):
            js.check_return(Blob(is_dynamic=True), returns, is_blob, "job")
    for returns in (tp.ListNumpy, tp.ListListNumpy, sg.MISSING, an.BundleOf(tp.ListNumpy)):
        js.check_return(Blob(is_dynamic=True), returns, is_blob, "job")


def test_a_namedtuple_survives_a_bundle():
    Pair = namedtuple("Pair", "a b")
    out = sg.convert(Pair(Blob(), Blob()), an.BundleOf(tp.Numpy), lambda blob, kind: kind)
    assert out == Pair(tp.Numpy, tp.Numpy) and type(out) is Pair


# --- arrays of a call
# ------------------------------------------------------------------------------------------------

NUMBERS = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_]


@given(st.data())
def test_an_array_of_the_right_shape_is_cast(data):
    shape = data.draw(hnp.array_shapes(max_side=4))
    d = ph.FixedTensorDef(shape, data.draw(st.sampled_from([dt.float32, dt.float64, dt.int32, dt.int64])))
    x = data.draw(hnp.arrays(data.draw(st.sampled_from(NUMBERS)), shape, elements=st.integers(0, 1)))
    x = x.T.copy().T if data.draw(st.booleans()) else x
    y = ag.check_argument(d, x, "here")
    assert y.dtype == d.numpy_dtype and y.shape == shape and np.array_equal(y, x)
    assert y is x or x.dtype != d.numpy_dtype


def test_floats_are_truncated_to_integers():
    assert ag.check_argument(ph.FixedTensorDef((2,), dt.int32), np.array([1.9, -1.9]),
                             "here").tolist() == [1, -1]


@given(hnp.array_shapes(max_dims=4, max_side=5), hnp.array_shapes(max_dims=4, max_side=5))
def test_any_other_shape_is_refused_with_advice_that_works(want, got):
    d, x = ph.FixedTensorDef(want), np.zeros(got, np.float32)
    if want == got:
        assert ag.check_argument(d, x, "here") is x
        return
    with raises(AssertionError, "here", str(want), str(got)) as e:
        ag.check_argument(d, x, "here")
    fix = e.info.value.fix
    for name in ("x.reshape", "x.transpose", "x[None]"):
        if name in fix:
            y = eval(fix[fix.index(name):], {"x": x})
            assert y.shape == want


@pytest.mark.parametrize("want, got, word", [
    ((100, 784), (28, 784), "last"), ((100, 784), (60000, 784), "x[i:i + 100]"), ((1, 3), (3,), "x[None]"),
    ((100, 784), (784,), "np.stack"), ((2, 1, 28, 28), (2, 28, 28, 1), "transpose(0, 3, 1, 2)"),
    ((2, 784), (2, 28, 28), "reshape(2, 784)"), ((2, 3), (5, 7), "Placeholder((5, 7))")])
def test_errors_name_the_likely_cause_of_a_wrong_shape(want, got, word):
    with raises(AssertionError, word):
        ag.check_argument(ph.FixedTensorDef(want), np.zeros(got, np.float32), "here")


@pytest.mark.parametrize("value", [[1.0, 2.0], 1.0, None, "ab", (1, 2), np.float32(1)])
def test_values_that_are_not_arrays_are_refused(value):
    with raises(AssertionError, "here", "array"):
        ag.check_argument(ph.FixedTensorDef((2,)), value, "here")


@pytest.mark.parametrize("value", [np.array(["1", "2"]), np.array([None, 1]), np.array([1j, 2])])
def test_non_numeric_elements_are_refused(value):
    with raises(TypeError, "here", "numbers"):
        ag.check_argument(ph.FixedTensorDef((2,)), value, "here")


def test_list_numpy_takes_one_array_per_device_up_to_a_size():
    d = mirrored.MirroredTensorDef((4, 3))
    a, b = ag.check_argument(d, [np.zeros((2, 3)), np.zeros((6, 2))], "here", devices=2)
    assert (a.dtype == b.dtype == np.float32
            and b.shape == (6, 2)), "an axis may exceed its size, the product may not"

    class Sub(np.ndarray):
        pass

    for value, word in [(np.zeros((2, 3)), "per device"), ([np.zeros((2, 3))], "array_split(x, 2)"),
                        ([[1.0], [2.0]], "array"), ([np.zeros(3)] * 2,
                                                    "rank"), ([np.zeros((5, 3))] * 2, "larger"),
                        ([np.zeros((2, 3)).view(Sub)] * 2, "asarray")]:
        with raises(AssertionError, word):
            ag.check_argument(d, value, "here", devices=2)


def test_list_list_numpy_takes_a_list_per_device():
    d = mirrored.MirroredTensorListDef((3, 2, 2))
    (out,) = ag.check_argument(d, [[np.ones((1, 2, 2)), np.ones((1, 3, 1))]], "here")
    assert [x.shape for x in out] == [(1, 2, 2), (1, 3, 1)] and out[0].dtype == np.float32
    for value, word in [([(np.ones((1, 2, 2)),)], "list"), ([[np.ones((2, 2))]], "rank"), ([[5]], "array"),
                        ([[np.ones((1, 4, 4))]], "larger"), ([[np.ones((1, 2, 2))] * 4], "together larger"),
                        ([], "per device")]:
        with raises(AssertionError, word):
            ag.check_argument(d, value, "here")


def test_nested_definitions():
    a = ph.FixedTensorDef((2,))
    x = np.zeros(2, np.float32)
    out = ag.check_argument((a, {"u": [a]}), [x, {"u": (x,)}], "here")
    assert type(out) is tuple and type(out[1]["u"]) is list and out[0] is x
    for value in ([x], x, [x, {"v": [x]}], [x, [x]], [x, {"u": [x, x]}]):
        with raises(AssertionError, "here"):
            ag.check_argument((a, {"u": [a]}), value, "here")
    with raises(AssertionError, "here[1]['u'][0]"):
        ag.check_argument((a, {"u": [a]}), [x, {"u": [np.zeros(3)]}], "here")


def test_all_arguments_of_a_call():
    defs = (ph.FixedTensorDef((4, 3)), ph.FixedTensorDef((4,), dt.int32))
    x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    a, b = ag.check_arguments("train_job", ("images", "labels"), defs, (x, y))
    assert a is x and b.dtype == np.int32
    with raises(AssertionError, "train_job", "(images, labels)", "swapped"):
        ag.check_arguments("train_job", ("images", "labels"), defs, (y, x))
    with raises(AssertionError, "train_job", "2: (images, labels)"):
        ag.check_arguments("train_job", ("images", "labels"), defs, (x,))
    for bad in (x[:2], x.T, np.zeros((4, 3, 1), np.float32)):
        with raises(AssertionError, "argument 1 (images)", str(bad.shape)):
            ag.check_arguments("train_job", ("images", "labels"), defs, (bad, y.astype(np.int32)))
    with raises(AssertionError, "argument 2 (labels)"):
        ag.check_arguments("train_job", ("images", "labels"), defs, (x, y[:2]))


def test_the_names_scripts_import():
    assert set(tp.__all__) == {"Numpy", "ListNumpy", "ListListNumpy", "Callback", "Bundle",
                               "PyStructCompatibleToBlob"}
    assert all(issubclass(k, tp.PyStructCompatibleToBlob) for k in (tp.Numpy, tp.ListNumpy, tp.ListListNumpy))
    assert issubclass(UnsupportedError, NotImplementedError)
