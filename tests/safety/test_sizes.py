"""Laws: no size, of an argument or in the data, reaches memory that is not there; what is too large says so."""
from .children import run_child


def test_no_size_breaks_a_call():
    assert "\nall " in run_child("import sizes; sizes.main()", 200)
