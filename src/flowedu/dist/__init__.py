"""Chapter 6: distribution.

    sbp        what a layout is: split, broadcast, partial sum, and how a size is cut
    signature  which layouts an op may have, read off its record
    local      the call that one device makes of an op
    boxing     from one layout to another: routes, who sends what to whom, bytes
    choose     the signature of a call that moves the fewest bytes
    spread     a graph of logical values becomes one of their parts
"""
