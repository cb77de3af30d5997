"""Graphs of global values: one logical graph becomes one ordinary graph for each rank.

    placing.py  what a graph under construction knows of where its values lie
    lower.py    the rows of core/sbp/infer.py -> {rank: Graph}; boxing as nodes
    view.py     the ranks' plans, and one step of all of them
"""
