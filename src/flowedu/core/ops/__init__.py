"""Chapter 2: ops. Importing this package registers the basic ones. Its files, in reading order (some with a later chapter):

    record.py                   the parts of an op's record
    axes.py                     the axis equation: shapes, cost and splits of an op
    define.py                   define: a record from a few lines
    tiled.py                    elementwise records from one formula
    elementwise.py              records: elementwise ops
    matmul.py                   records: the matrix product
    reduce.py                   records: sum, max, min, prod
    view.py                     records: views, and the copies they may need
    concat.py                   records: slice, its gradient, concat
    update.py                   records: optimizer steps; SGD
    reverse.py                  reverse accumulation over a list of calls
    promote.py                  the dtype of a result, and of the computation
    value.py                    Value: operators of what has no data
    tensor.py                   Tensor: attributes, conversions, operators
    arrays.py                   tensors over NumPy arrays
    pykernel.pyx                kernels written in Python
    program.pyx                 an elementwise formula, and the tiles it becomes
    dispatch.pxd, dispatch.pyx  the engine: its structs; it includes the .pxi files below
    open.pxi                    hooks that other modules fill
    stack.pxi                   the stack of interpreters
    entry.pxi                   Entry: an op on one set of Specs, ready to run
    eager.pxi                   the eager interpreter
    memory.pxi                  tensors with new memory
    launch.pxi                  how a kernel is called, on how many threads
    node.pxi                    nodes of the tape
    tensorbase.pxi              the C part of Tensor
    link.pxi                    views and their history
    inplace.pxi                 writes into a tensor's memory
    lazy.pxi                    (4) calls on values of a graph
    spread.pxi                  (6) calls on global tensors
    elsewhere.pxi               (8) calls on tensors of other devices
"""
# Records of other families are built from `view` and `elementwise`, so these come first.
from flowedu.core.ops import view, elementwise  # isort: skip
from flowedu.core.ops import concat, matmul, reduce, update
