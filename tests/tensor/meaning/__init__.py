"""NumPy reference for the functions and methods of tensors: a second `m` for the lines of cases.py, with
PyTorch's spellings. This package never calls flowedu.
"""
from types import SimpleNamespace

from . import creation, elementwise, linear, reductions, search, shapes
from .kinds import T

T.functions.update({n: f for module in (creation, elementwise, reductions, shapes, linear, search)
                    for n, f in module.FUNCTIONS.items()})
m = SimpleNamespace(**T.functions | elementwise.DTYPES, linalg=SimpleNamespace(**reductions.LINALG),
                    nn=SimpleNamespace(functional=SimpleNamespace(one_hot=search.one_hot)),
                    promote_types=lambda a, b:
                    elementwise.result(creation.as_kind([0], a), creation.as_kind([0], b)))
