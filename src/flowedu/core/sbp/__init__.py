"""Chapter 6: distribution over devices, file by file in reading order.

    sbp.py         layouts: split, broadcast, partial sum; how a size is cut
    names.py       placement and sbp as users write them
    signature.py   the SBP signatures of an op on a row of devices
    local.py       the call of one device
    candidates.py  all signatures of a call on a grid of devices
    rules.py       the order of candidates
    choose.py      the signature that moves the fewest bytes
    boxing/        conversion between layouts: routes, messages, bytes
    ranks.py       ranks and communicators
    tensor/        global tensors: the interpreter, conversion from and to local tensors
"""
