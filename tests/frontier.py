"""The chapters whose exercises each test needs, defined only here. `pytest --upto 3` runs the tests of
chapters 1 to 3.

A file belongs to the chapter named here, otherwise to the last one, so it may use the whole library. A single
test can differ by `@pytest.mark.chapter(4)` or by its name, as in test_chapter_4_a_job_computes. `python -m
flowedu_course.teach.frontier` finds wrong marks: it runs the tests of chapters 1 to k in a tree where later
exercises are stubs.
"""
import re
from fnmatch import fnmatch

LAST = 8
FILES = {
    1: ["tests/core/test_storage.py"],
    2: ["tests/structure/test_records.py", "tests/core/test_reductions.py"],
    3: ["tests/core/test_initializers.py", "tests/core/test_coin_flip.py"],
    4: ["tests/core/job/test_blobs.py", "tests/chapters/test_chapter4.py", "tests/laws/test_plan_quality.py"],
    5: ["tests/graph/test_state.py", "tests/graph/test_inputs.py"],
    6: ["tests/dist/test_chapter6.py", "tests/dist/test_choose.py", "tests/core/test_views.py"],
    7: ["tests/core/test_tensor_buffer.py", "tests/chapters/test_chapter7.py"],
}
# Single tests in these files that need another chapter.
TESTS = {
    **{f"tests/core/job/test_blobs.py::test_{name}": 1 for name in (
        "a_number_that_the_dtype_does_not_have_is_refused", "dtype_names", "dtypes_are_never_promoted",
        "matmul_does_not_broadcast_batches", "only_python_numbers_mix_with_blobs",
        "shape_functions_refuse_invalid_arguments",
        "shapes_that_do_not_broadcast_are_refused", "an_op_of_two_python_numbers_is_refused",
        "unsupported_blob_operations_raise")},
    "tests/core/test_storage.py::test_backward_frees_saved_tensors": 2,
    "tests/core/test_storage.py::test_eager_training_leaks_nothing": 3,
    "tests/core/test_storage.py::test_sessions_are_freed": 4,
    "tests/core/test_storage.py::test_calls_leak_nothing": 6,
    "tests/core/test_coin_flip.py::test_a_compiled_job_keeps_its_seeds": 4,
    "tests/core/test_coin_flip.py::test_coins_of_a_job_differ_from_run_to_run_and_op_to_op": 4,
    "tests/core/test_reductions.py::test_reductions_propagate_nan_and_infinity": 4,
    "tests/laws/test_plan_quality.py::test_plans_of_models": 5,
    "tests/core/test_reductions.py::test_reductions_in_jobs_equal_numpys": 6,
}


def first_chapter(path: str) -> int:
    """Return the earliest chapter of the tests in a file, as far as it is defined here."""
    return min([chapter_of(path, ""), *(n for test, n in TESTS.items() if test.startswith(f"{path}::"))])


def chapter_of(path: str, name: str, marked: int | None = None) -> int:
    """Return the chapter of a test, by its mark, its name, or its file."""
    if marked is not None:
        return marked
    if (single := TESTS.get(f"{path}::{name}")) is not None:
        return single
    named = re.match(r"test_chapter_(\d)_", name)
    if named:
        return int(named[1])
    return next((n for n, patterns in FILES.items() if any(fnmatch(path, p) for p in patterns)), LAST)
