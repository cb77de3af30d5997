"""Chapter 2: the files that compute gradients of eager calls, in reading order.

    tape.pyx    the traversal of the tape; includes the .pxi files
    rules.pxi   the gradient rules of one node
    arrive.pxi  delivery of gradients: .grad, hooks, anomaly mode
    custom.py   nodes without an op
"""
