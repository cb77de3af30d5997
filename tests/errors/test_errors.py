"""Mistakes and their errors: place (op, user's line), expected, got, and fix.

First the law: an op called with a wrong shape or dtype raises a FlowError that names the op, or returns
NumPy's result for the same arrays; it never crashes and never returns anything else. Then common user
mistakes.
"""
import ast
import warnings
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, FlowError, KernelError
from laws.calls import (
    assert_equal_up_to_rounding,
    attributes,
    cases,
    draw_arrays,
    draw_values,
    input_name,
    label,
    reference,
    thin,
)

PACKAGE = Path(flow.__file__).parent
CALLS = cases(lambda op: op.examples or op.elementwise)        # updates have no examples: see below


# --- the law
# ---------------------------------------------------------------------------------------------------------

def outcome(op, arrays, attrs):
    """Return ("refused", the error) or ("gave", the results as arrays; for updates, the changed inputs)."""
    tensors = [flow.tensor(a) for a in arrays]
    try:
        out = op.call(tuple(tensors), attrs)
    except FlowError as e:
        return "refused", e
    mutates = op.mutates
    if mutates:
        return "gave", [tensors[i].numpy() for i in mutates(len(tensors))]
    return "gave", [y.numpy() for y in (out if isinstance(out, tuple) else (out,))]


def judge(op, arrays, attrs):
    """Check the law for one call; return "refused" or "gave"."""
    kind, got = outcome(op, arrays, attrs)
    shapes = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in arrays)
    if kind == "refused":
        assert op.name in got.problem, f"{op.name}({shapes}): does not name the op: {got}"
        number = isinstance(got, KernelError)              # its message names the bad index
        assert got.expected and (got.got or number), f"{op.name}({shapes}): says too little: {got}"
        assert got.at.startswith(
            "test_errors.py"), f"{op.name}({shapes}): does not name the user's line: {got}"
        return kind
    try:
        with warnings.catch_warnings(action="ignore"):
            half = any(a.dtype == np.float16 for a in arrays)        # computed in float32, and rounded once
            want = reference(op, [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays],
                             attrs)
    except Exception as e:
        raise AssertionError(
            f"{op.name}({shapes}) gave {[y.shape for y in got]}, NumPy refuses: {e!r}") from None
    for y, w in zip(got, want, strict=True):
        assert y.shape == w.shape, f"{op.name}({shapes}): {y.shape} instead of {w.shape}"
        if half and y.dtype == np.float16:
            w = w.astype(np.float16)
        if half and all(a.size for a in arrays) and y.dtype.kind == "f":
            np.testing.assert_allclose(y.astype(float), w.astype(float), rtol=2e-3, atol=2e-3)
        # an empty mean is NaN or 0
        elif not op.random and w.dtype == y.dtype and all(a.size for a in arrays):
            assert_equal_up_to_rounding(y, w, np.float32, 10.0)
    return kind


def example_arrays(op, example):
    rng = np.random.default_rng(1)
    return draw_arrays(op, example, np.float32, rng)


def resized(op, a, shape, i):
    return draw_values(op.domain.get(input_name(op, i), "any"), shape, a.dtype, np.random.default_rng(2), i)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_a_wrong_shape_is_refused_or_equals_numpy(case):
    """The op `require` tests a tensor of any shape."""
    op, example = case
    attrs, arrays = attributes(op, example), example_arrays(op, example)
    assert judge(op, arrays, attrs) == "gave"
    found = []
    for i, a in enumerate(arrays):
        shapes = [a.shape[:d] + (n,) + a.shape[d + 1:] for d in range(a.ndim) for n in (a.shape[d] + 1, 1, 0)]
        shapes += [(*a.shape, 1), (*a.shape, 2), (2, *a.shape), a.shape[1:], a.shape[:-1], a.shape[::-1]]
        for shape in shapes:
            if shape != a.shape:
                found.append(judge(op, [*arrays[:i], resized(op, a, shape, i), *arrays[i + 1:]], attrs))
    if len(arrays) > 1 and not op.elementwise and all(a.size for a in arrays) and op.name != "require":
        assert "refused" in found, f"{op.name} takes any shapes?"


UPDATES = {"sgd_update": 2, "momentum_update": 3, "adam_update": 4}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_refuse_mismatched_arguments(name):
    op, good = flow.ops.REGISTRY[name], [np.full(1, 0.1, np.float32), np.zeros(1, np.int64),
                                         *[f32(2, 3)] * (2 * UPDATES[name])]
    attrs = op.complete({})
    assert judge(op, good, attrs) == "gave"
    for i in range(len(good)):
        for wrong in (np.zeros((3, 2), good[i].dtype), np.zeros((2, 3), np.int32)):
            assert judge(op, [*good[:i], wrong, *good[i + 1:]], attrs) == "refused"
    assert judge(op, good[:-1], attrs) == "refused"


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_a_wrong_dtype_is_refused_or_equals_numpy(case):
    op, example = case
    attrs, arrays = attributes(op, example), example_arrays(op, example)
    for i, a in enumerate(arrays):
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.float16):
            if dtype != a.dtype:
                judge(op, [*arrays[:i], a.astype(dtype), *arrays[i + 1:]], attrs)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_too_few_and_too_many_inputs_are_refused(case):
    op, example = case
    attrs, arrays = attributes(op, example), example_arrays(op, example)
    if op.variadic:
        return
    for wrong in ([*arrays, f32(2)], arrays[:-1]):
        if len(wrong) != len(arrays):
            kind, e = outcome(op, wrong, attrs)
            assert kind == "refused" and op.name in e.problem and e.expected and e.got, f"{op.name}: {e}"


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_unknown_attributes_are_refused(case):
    op, example = case
    with pytest.raises(FlowError, match=op.name):
        op(*map(flow.tensor, example_arrays(op, example)), no_such_attribute=1)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_a_graph_refuses_the_same_calls_as_eager(case):
    """With the same text, before any data exist."""
    op, example = case
    attrs, arrays = attributes(op, example), example_arrays(op, example)
    for i, a in enumerate(arrays):
        for shape in [a.shape[:d] + (a.shape[d] + 1,
                                     ) + a.shape[d + 1:] for d in range(a.ndim)] + [(*a.shape, 2),
                                                                                    a.shape[1:]]:
            wrong = [*arrays[:i], resized(op, a, shape, i), *arrays[i + 1:]]
            kind, got = outcome(op, wrong, attrs)
            if kind == "refused" and not isinstance(got, KernelError):
                with pytest.raises(type(got)) as e:
                    op.infer([Spec(w.shape, as_dtype(w.dtype)) for w in wrong], attrs)
                assert e.value.problem == got.problem


# --- labels
# ----------------------------------------------------------------------------------------------------------

LOGITS, LABELS = f32(4, 3), np.array([0, 2, 1, 0], np.int32)
xent = flow.nn.sparse_softmax_cross_entropy_with_logits


def test_a_float_label():
    with refused(TypeError, "labels must be integers", "flow.cast"):
        run(xent, LABELS.astype(np.float32), LOGITS)


def test_swapped_labels_and_logits():
    with refused(TypeError, "labels must be integers", "swap the two arguments"):
        run(lambda a, b: xent(b, a), LABELS, LOGITS)
    with refused((TypeError, ValueError), "swap", "labels come first"):
        run(lambda a, b: xent(b, a), LABELS.astype(np.float32), LOGITS)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (4, 2), (3, 4), ()])
def test_labels_that_do_not_fit(shape):
    with refused((ValueError, AssertionError), "sparse_softmax_cross_entropy", "labels"):
        run(xent, np.zeros(shape or (1,), np.int32) if shape else np.zeros((1, 1, 1), np.int32), LOGITS)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [3, -1, 2**31 - 1])
def test_a_label_out_of_range_inside_a_job_changes_no_variable(bad, threads):
    flow.set_num_threads(threads)
    images, labels = f32(64, 1, 8, 8), np.zeros(64, np.int32)

    def body(a, t):
        h = flow.layers.conv2d(a, 8, 3, padding="SAME", kernel_initializer=flow.random_normal_initializer(),
                               name="conv")
        h = flow.layers.batch_normalization_relu(h, 1, name="bn")
        loss = xent(t, flow.layers.dense(flow.reshape(h, [64, -1]), 3, name="out"))
        flow.optimizer.Adam(constant_rate(0.1)).minimize(loss)
        return loss

    step = job(body, images, labels, type="train")
    step(images, labels)
    before = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    wrong = labels.copy()
    wrong[37] = bad
    for _ in range(2):
        with refused(KernelError, "sparse_softmax_cross_entropy", f"index {bad}",
                     "0 <= label < number of classes",
                     "no variable was updated", "xent(t, flow.layers.dense"):
            step(images, wrong)
    for name, value in flow.get_all_variables().items():
        np.testing.assert_array_equal(value.numpy(), before[name], name)
    again = step(images, labels)
    assert np.isfinite(again).all()


def test_an_index_out_of_range_eagerly():
    with refused(KernelError, "out of range", "labels"):
        xent(flow.tensor(np.array([9, 0, 0, 0])), flow.tensor(LOGITS))
    with refused(KernelError, "gather", "out of range"):
        flow.gather(flow.tensor(LOGITS), flow.tensor(np.array([4])))


# --- calls of jobs
# ---------------------------------------------------------------------------------------------------

def train_job():
    @flow.global_function("predict")
    def train_job(images: tp.Numpy.Placeholder((4, 1, 2, 2)),
                  labels: tp.Numpy.Placeholder((4,), flow.int32)) -> tp.Numpy:
        return images
    return train_job


IMAGES = f32(4, 1, 2, 2)


@pytest.mark.parametrize("args, words", [
    ((IMAGES,), ["wrong number of arguments", "(images, labels)"]),
    ((IMAGES, LABELS, LABELS), ["wrong number of arguments", "2"]),
    ((LABELS, IMAGES), ["images and labels look swapped"]),
    ((IMAGES[:3], LABELS), ["argument 1 (images)", "(4, 1, 2, 2)", "(3, 1, 2, 2)", "a last, smaller batch?"]),
    ((IMAGES.reshape(4, 4), LABELS), ["images", "x.reshape(4, 1, 2, 2)"]),
    ((IMAGES, LABELS[:, None]), ["argument 2 (labels)", "(4,)", "(4, 1)"]),
    ((IMAGES.tolist(), LABELS), ["not a NumPy array", "np.array(x)"]), ((flow.tensor(IMAGES), LABELS),
                                                                        ["x.numpy()"]),
    ((3.0, LABELS), ["not a NumPy array", "the float 3.0"]), ((None, LABELS), ["not a NumPy array"])])
def test_a_job_called_with_wrong_arguments(args, words):
    called = train_job()
    for _ in range(2):                               # before and after the session started
        with refused(AssertionError, "train_job", *words):
            called(*args)
    np.testing.assert_array_equal(called(IMAGES, LABELS), IMAGES)


def test_a_job_called_with_non_numeric_elements():
    called = train_job()
    with refused(TypeError, "train_job", "images", "not numbers"):
        called(np.full((4, 1, 2, 2), "a"), LABELS)
    with refused(TypeError, "not numbers"):
        called(IMAGES.astype(complex), LABELS)


def test_a_job_called_by_keyword():
    called = train_job()
    for args in ((), (IMAGES,)):
        with pytest.raises(TypeError) as e:
            called(*args, labels=LABELS)
        assert "positional arguments only" in str(e.value) and "train_job(images, labels)" in str(e.value)


# --- definitions
# -----------------------------------------------------------------------------------------------------

def test_a_bare_decorator():
    with refused(AssertionError, "global_function", "@flow.global_function()", "add the parentheses", "step"):
        @flow.global_function
        def step(a: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
            return a


def test_a_train_job_without_minimize():
    with refused(RuntimeError, "job: loss blob not found", "minimize(loss)", at=False):
        run(lambda a: a, f32(2), type="train")


def test_a_job_defined_after_the_first_call():
    run(lambda a: a, f32(2))
    with refused(NotImplementedError, "late", "after the session started", "clear_default_session"):
        job(lambda a: a, f32(2), name="late")


def test_a_name_used_twice():
    with refused(AssertionError, "variable 'd-weight' already exists", "name='d2'"):
        run(lambda a: flow.layers.dense(flow.layers.dense(a, 2, name="d"), 2, name="d"), f32(2, 3))
    with refused(RuntimeError, "'w' differs between jobs", "float32[3]", "float32[4]"):
        flow.clear_default_session()
        job(lambda a: flow.get_variable("w", (3,), initializer=flow.ones_initializer()) * a, f32(3),
            name="one")
        job(lambda a: flow.get_variable("w", (4,), initializer=flow.ones_initializer()) * a, f32(4),
            name="two")(f32(4))


def test_wrong_shapes_inside_a_body_name_the_line_of_the_body():
    def body(a):
        hidden = a + 1
        return flow.matmul(hidden, flow.constant(1.0, flow.float, (5, 2)))       # this line

    with refused(ValueError, "matmul", "k", "4", "5") as e:
        run(body, f32(3, 4))
    assert "the line" in e.info.value.at or "flow.matmul(hidden" in e.info.value.at


def test_an_array_inside_a_body():
    for body in (lambda a: a + f32(3, 3), lambda a: flow.matmul(a, f32(3, 3)),
                 lambda a: flow.reshape(f32(3), [3, 1])):
        with refused(TypeError, "NumPy array", "feed it as an argument of the job"):
            run(body, f32(3, 3))
    with refused(TypeError, "flow.tensor(x)"):
        flow.math.relu(f32(3))
    with refused((TypeError, ValueError)):
        run(lambda a: flow.matmul(a, flow.tensor(f32(3, 3))), f32(3, 3))


# --- checkpoints (more in test_checkpoints.py)
# -----------------------------------------------------------------------

def test_a_checkpoint_directory_that_is_not_empty(tmp_path):
    run(lambda a: flow.layers.dense(a, 2), f32(2, 3))
    (tmp_path / "mine.txt").write_text("kept")
    with refused(AssertionError, "Non-empty directory", "choose another path"):
        flow.checkpoint.save(str(tmp_path))
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "kept" and len(
        list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("keep, words", [(5, ["too short", "5 bytes", "24 bytes"]), (0, ["too short"])])
def test_a_truncated_checkpoint(tmp_path, keep, words):
    run(lambda a: flow.layers.dense(a, 2), f32(2, 3))
    flow.checkpoint.save(str(tmp_path / "c"))
    out = tmp_path / "c" / "Dense-weight" / "out"
    out.write_bytes(out.read_bytes()[:keep])
    with refused(RuntimeError, str(out), *words):
        flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))


# --- the family
# ------------------------------------------------------------------------------------------------------

def test_messages_have_one_form():
    e = CheckError("op: a problem", expected="this", got="that", fix="do it", at="file.py:1: code")
    assert str(e) == ("op: a problem\n  at:       file.py:1: code\n  expected: this\n  got:      that\n  "
                      "fix:      do it")
    assert issubclass(CheckError, AssertionError) and issubclass(KernelError, RuntimeError)


FAMILY = {"ShapeError", "DTypeError", "ArgumentError", "CheckError", "UnsupportedError",
          "JobBuildAndInferError",
          "KernelError", "GradientError", "CheckpointError", "CheckpointFileError", "DataError"}
FRONT_FOLDERS = ("oneflow04", "oneflow04/functions", "oneflow04/job", "oneflow04/nn", "oneflow04/optim",
                 "core/job", "core/layers", "nn", "optim")
FRONT_END = [p for folder in FRONT_FOLDERS for p in sorted((PACKAGE / folder).glob("*.py"))]


@pytest.mark.parametrize("path", FRONT_END, ids=lambda p: p.stem)
def test_every_front_end_error_has_expected_got_and_fix(path):
    calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)
             and isinstance(n.func, ast.Name) and n.func.id in FAMILY]
    short = [f"{path.name}:{n.lineno} lacks {missing}" for n in calls
             if (missing := sorted({"expected", "got", "fix"} - {k.arg for k in n.keywords}))]
    assert not short, "\n".join(short)
