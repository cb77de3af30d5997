"""Graphs of global values: one logical graph becomes one ordinary graph for each rank.

    infer.py    layouts of the values of a graph, and the messages between devices
    placing.py  layouts recorded while a graph is built
    nodes.py    boxing as nodes
    lower.py    the rows of infer.py -> {rank: Graph}
    view.py     the ranks' plans, and one step of all of them
"""
