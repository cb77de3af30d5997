"""Chapter 6: distribution. Its files, in reading order:

    sbp.py         layouts: split, broadcast, partial sum; how a size is cut
    names.py       placement and sbp as users write them
    signature.py   which layouts an op may have on a row of devices
    local.py       the call that one device makes of an op
    candidates.py  all the ways a call may lie on a grid
    rules.py       which of several ways wins
    choose.py      the way that moves the fewest bytes
    boxing/        from one layout to another: routes, messages, bytes
    ranks.py       ranks, and the messages between them
    tensor/        global tensors: the interpreter, the way in and out
"""
