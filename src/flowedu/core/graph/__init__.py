"""Chapter 4: graphs and their execution plans. The files are listed in reading order.

    ir.py         the graph, and the interpreter that builds it
    devices.py    the device of a graph's values
    backward.py   the backward pass
    updates.py    scaling, clipping, and update ops
    rewrite.py    helpers shared by the passes
    passes.py     passes, one function each
    memory.py     the offset of each buffer in the arena
    plan.py       a graph lowered to bound kernel calls
    bind.pxi      the calls of a plan in memory, with the addresses of their arguments
    arrays.pxi    arguments and outputs of a plan
    executor.pyx  runs a plan without Python; includes the .pxi files
    program.py    a graph with its passes, plan, and executor
"""
