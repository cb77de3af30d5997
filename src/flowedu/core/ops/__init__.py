"""Chapter 2: what an op is. Importing this package registers the basic ones. Its files, in reading order:

    record.py                   the parts of an op's record
    call.pxd, call.pyx          the one place all calls pass through; interpreters
    axes.py                     the axis equation: shapes, cost and splits of an op
    define.py                   define: a record from a few lines
    promote.py                  the dtype of a result, and of the computation
    program.pyx                 an elementwise formula, and the tiles it becomes
    tiled.py                    elementwise records from one formula
    elementwise.py              records: elementwise ops
    matmul.py                   records: the matrix product
    value.py                    Value: operators of what has no data
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
