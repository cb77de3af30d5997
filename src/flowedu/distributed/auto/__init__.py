"""The automatic choice of layouts for a whole logical graph, which minimizes the bytes of one step.

model     unknowns, and the cost of every value under their options
solve     the smallest sum of tables of costs
search    both together: `automatic`
told      the result, compared with the greedy choice
"""
from flowedu.distributed.auto.search import Assignment, Found, automatic, trained

__all__ = ["Assignment", "Found", "automatic", "trained"]
