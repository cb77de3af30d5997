"""Which chapter's exercises a test needs: the one place that says so. `pytest --upto 3` runs those of chapters 1 to 3.

A file belongs to the chapter named here, else to the last: it may use all of the library. A single test says more with
`@pytest.mark.chapter(4)`, or by its name, as test_chapter_4_a_job_computes does. `python -m flowedu.learn.teach.frontier`
finds marks that are wrong: it runs the tests of chapters 1 to k where later exercises are stubs.
"""
import re
from fnmatch import fnmatch

LAST = 8
FILES = {
    1: ["tests/test_storage.py", "tests/test_blobs.py"],
    2: ["tests/test_records.py", "tests/test_reductions.py"],
    3: ["tests/test_initializers.py", "tests/test_coin_flip.py"],
    4: ["tests/test_chapter4.py", "tests/laws/test_plan_quality.py"],
    5: ["tests/graph/test_state.py", "tests/graph/test_inputs.py"],
    6: ["tests/dist/test_chapter6.py", "tests/dist/test_choose.py", "tests/test_views.py"],
    7: ["tests/test_tensor_buffer.py", "tests/test_chapter7.py"],
}
# Single tests of these files that need more.
TESTS = {
    "tests/test_storage.py::test_backward_frees_what_forward_saved": 2,
    "tests/test_storage.py::test_eager_training_leaks_nothing": 3,
    "tests/test_storage.py::test_sessions_come_and_go": 4,
    "tests/test_reductions.py::test_in_jobs": 6,
}


def chapter_of(path: str, name: str, marked: int | None = None) -> int:
    """Of a test: its own mark, what its name says, what its file is."""
    if marked is not None:
        return marked
    if (single := TESTS.get(f"{path}::{name}")) is not None:
        return single
    named = re.match(r"test_chapter_(\d)_", name)
    if named:
        return int(named[1])
    return next((n for n, patterns in FILES.items() if any(fnmatch(path, p) for p in patterns)), LAST)
