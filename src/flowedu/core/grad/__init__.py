"""Chapter 2: gradients of eager calls. Its files, in reading order:

    tape.pyx    the walk over the tape; it includes the .pxi files
    rules.pxi   the gradient rules of one node
    arrive.pxi  where gradients arrive: .grad, hooks, anomaly mode
    custom.py   nodes that are no op calls
"""
