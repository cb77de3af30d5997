"""The automatic choice of layouts for a whole logical graph, which minimizes the bytes of one step.

model     unknowns, and the cost of every value under their options
solve     the minimum of a sum of costs
search    `automatic`, which uses both
told      a report of the result, compared with the greedy choice
"""
from flowedu.distributed.auto.search import Assignment, Found, automatic, trained

__all__ = ["Assignment", "Found", "automatic", "trained"]
