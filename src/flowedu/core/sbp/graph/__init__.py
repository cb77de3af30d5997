"""Graphs of global values: one logical graph becomes one ordinary graph for each rank.

    records    boxing as nodes: ops whose kernel calls a communicator
    lower      the rows of core/sbp/infer.py -> {rank: Graph}
    zero       ZeRO: parameters that are split while they are not used
    pipeline   the order of micro-batches over the stages
    run        the ranks' plans, and one step of all of them
"""
