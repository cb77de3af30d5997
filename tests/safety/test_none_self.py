"""Law: a method of Tensor that is called on None or another non-tensor raises and reads no invalid memory."""
from .children import run_child


def test_methods_called_on_none_raise():
    out = run_child("import none_self; none_self.main()", 120)
    assert int(out.rpartition("calls made: ")[2]) > 10_000
