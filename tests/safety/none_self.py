"""Calls of all Tensor methods on None and other non-tensors; test_none_self.py runs it in a subprocess."""
import inspect
import warnings

import flowedu as flow
from flowedu.errors import FlowError

WRONG = [None, 1, "x", object()]
ARGUMENTS = [(), (1,), (0, 1), (None,), (flow.ones(2),), (flow.ones(2), flow.ones(2)),
             (0, flow.tensor([0]), flow.ones(1))]
OF_PYTHON = {"__class__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__init__"}


def functions():
    """Yield (name, function) of the methods of a tensor, and of the getters and setters of its properties."""
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
                    assert self == 1, name                       # an int has its own operators
    print("calls made:", count)
