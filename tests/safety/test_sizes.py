"""Law: no size, in arguments or data, leads to invalid memory access; sizes that are too large raise."""
from .children import run_child


def test_no_size_crashes_a_call():
    assert "\nall " in run_child("import sizes; sizes.main()", 200)
