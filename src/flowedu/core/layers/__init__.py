"""Chapter 3: the context of a computation, and modules with parameters. Its files, in reading order:

    context.py    where a layer gets variables and names
    parameter.py  Parameter: a tensor that is learnt
    module.py     Module: parameters, buffers, other modules
    group.py      update rules, states, BaseOptimizer
"""
