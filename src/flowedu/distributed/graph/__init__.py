"""Graphs of global values: one logical graph becomes one ordinary graph for each rank.

    infer.py    where the values of a graph lie, and what is sent for them
    placing.py  what a graph under construction knows of where its values lie
    nodes.py    boxing as nodes
    lower.py    the rows of infer.py -> {rank: Graph}
    view.py     the ranks' plans, and one step of all of them
"""
