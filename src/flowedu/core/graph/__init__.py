"""Chapter 4: graphs and the plans they become. Its files, in reading order:

    ir.py         the graph, and the interpreter that builds it
    devices.py    the device of a graph's values
    backward.py   the backward pass
    updates.py    from gradients to updates
    rewrite.py    what passes share
    passes.py     passes, a function each
    memory.py     the arena: where each buffer lies
    plan.py       a graph as bound kernel calls
    executor.pyx  runs a plan without Python
    scratch.pxi   views and scratch of one call (in executor.pyx)
    program.py    passes, plan, executor: once
"""
