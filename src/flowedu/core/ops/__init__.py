"""Chapter 2: ops, file by file in reading order. Importing this package registers the basic ops.

    record.py                   the parts of an op's record
    call.pxd, call.pyx          dispatch of all op calls; interpreters
    axes.py                     the axis equation: shapes, cost, and splits of an op
    define.py                   define: creates a record and registers it
    promote.py                  the dtype of a result, and of the computation
    program.pyx                 elementwise formulas, and their compilation to tiles
    tiled.py                    elementwise records from one formula
    elementwise.py              records: elementwise ops
    matmul.py                   records: the matrix product
    value.py                    Value: operators of symbolic values
    reverse.py                  reverse accumulation over a list of calls
    plain.py                    an interpreter of records, in NumPy
    view.py                     records: views, and the copies they may need
    concat.py                   records: slice, its gradient, concat
    reduce.py                   records: sum, max, min, prod
    update.py                   records: optimizer steps; SGD
"""
# Records of other families are built from `view` and `elementwise`, so these come first.
from flowedu.core.ops import view, elementwise  # isort: skip
from flowedu.core.ops import concat, matmul, reduce, update
