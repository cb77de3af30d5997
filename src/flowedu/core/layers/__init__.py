"""Chapter 3: modules with parameters, and the context that names them and creates variables.

    context.py    Context: variables and names of layers
    parameter.py  Parameter: a trainable tensor
    module.py     Module: parameters, buffers, and child modules
    group.py      update rules, their states, and BaseOptimizer
"""
