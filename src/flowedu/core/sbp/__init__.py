"""Chapter 6: distribution.

    sbp        what a layout is: split, broadcast, partial sum, and how a size is cut
    signature  which layouts an op may have on a row of devices, read off its record
    local      the call that one device makes of an op
    candidates all the ways a call may lie on a grid of devices
    boxing     from one layout to another: routes, who sends what to whom, bytes
    choose     the way of a call that moves the fewest bytes; rules: what wins among several
    infer      where every value of a graph lies, and what is moved for its readers
    graph      a graph of logical values becomes one for each rank (nn.Graph)
    tensor     global tensors: the interpreter, and the way in and out
    ranks      who there is, and the messages between them

On shelves: distributed/ (jobs on several devices, which share memory; the search for a whole graph's cheapest layouts,
ZeRO, pipelines, MPI), show/ (choices in words, bills, pictures).
"""
from flowedu.core.shelves import register_shelf

# what chapters 4 and 5 leave to this one
register_shelf({"a graph of global tensors": "flowedu.core.sbp.graph.view:GlobalView",
                "where global tensors lie": "flowedu.core.sbp.graph.placing:Placing"})
