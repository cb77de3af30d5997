"""Law: a method of Tensor called on None, or on what is no tensor, raises; it reads no memory that is not there."""
from .children import run_child


def test_no_method_takes_none_for_a_tensor():
    out = run_child("import none_self; none_self.main()", 120)
    assert int(out.rpartition("calls made: ")[2]) > 10_000
