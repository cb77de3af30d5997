"""Every method of Tensor called on None, and on a few other things. Run by test_none_self.py in a process of its own."""
import inspect
import warnings

import flowedu as flow
from flowedu.errors import FlowError

WRONG = [None, 1, "x", object()]
ARGUMENTS = [(), (1,), (0, 1), (None,), (flow.ones(2),), (flow.ones(2), flow.ones(2)), (0, flow.tensor([0]), flow.ones(1))]
OF_PYTHON = {"__class__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__init__"}


def functions():
    """(name, function) of everything a tensor has: methods, and what reads and writes its properties."""
    for name in dir(flow.Tensor):
        found = inspect.getattr_static(flow.Tensor, name)
        if name in OF_PYTHON or isinstance(found, (staticmethod, classmethod)):
            continue
        if callable(found):
            yield name, found
        elif hasattr(found, "__set__"):
            yield from ((name, found.__get__), (name, found.__set__))


def main() -> None:
    warnings.simplefilter("ignore")
    count = 0
    for name, f in functions():
        for self in WRONG:
            for args in ARGUMENTS:
                print(name, repr(self)[:8], len(args), flush=True)
                count += 1
                try:
                    f(self, *args)
                except (TypeError, AttributeError, FlowError):
                    continue
                except ArithmeticError:
                    assert self == 1, name                       # a number has operators of its own
    print("calls made:", count)
