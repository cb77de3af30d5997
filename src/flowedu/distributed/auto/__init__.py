"""The automatic choice of layouts for a whole logical graph: the fewest bytes of one step.

    model     unknowns, and the bill of every value under their options
    solve     the least sum of tables of costs
    search    both together: `automatic`
    told      the result, compared with the greedy choice
"""
from flowedu.distributed.auto.search import Assignment, Found, automatic, trained

__all__ = ["Assignment", "Found", "automatic", "trained"]
