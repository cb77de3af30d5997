"""Chapter 5: modules traced into graphs. Its files, in reading order:

    graph.py     nn.Graph: the class
    tracer.py    build runs once, on tensors without data
    blocks.py    what a graph knows of its modules
    io.py        names and containers of inputs and outputs
    options.py   options of one graph
    update.py    learning rates, and states of optimizers
    names.py     names as OneFlow prints them
    compiled.py  backward, updates, and the Program
    calls.py     what a call is given and gives back
"""
from flowedu.core.trace.graph import TracedGraph
