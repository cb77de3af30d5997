"""Chapter 6: distribution. Its files, in reading order:

    sbp.py         layouts: split, broadcast, partial sum; how a size is cut
    names.py       placement and sbp as users write them
    signature.py   which layouts an op may have on a row of devices
    local.py       the call that one device makes of an op
    candidates.py  all the ways a call may lie on a grid
    rules.py       what wins among several ways
    choose.py      the way that moves the fewest bytes
    boxing/        from one layout to another: routes, messages, bytes
    ranks.py       who there is, and the messages between them
    tensor/        global tensors: the interpreter, the way in and out
    infer.py       where the values of a graph lie
    graph/         a graph of logical values becomes one for each rank
    distribute.py  distribute_hint: a wish for a layout
"""
from flowedu.core.shelves import register_shelf

# what chapters 4 and 5 leave to this one
register_shelf({"a graph of global tensors": "flowedu.core.sbp.graph.view:GlobalView",
                "where global tensors lie": "flowedu.core.sbp.graph.placing:Placing"})
