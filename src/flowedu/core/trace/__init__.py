"""Chapter 5: modules traced into graphs. The files are listed in reading order.

    graph.py     nn.Graph: the class
    tracer.py    the interpreter that runs build once, on tensors without data
    blocks.py    data of a graph about its modules
    io.py        names and containers of inputs and outputs
    options.py   options of one graph
    update.py    learning rates, and states of optimizers
    compiled.py  backward pass, updates, and the Program; arguments and results of a call
"""
from flowedu.core.trace.graph import TracedGraph
