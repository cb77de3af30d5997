"""What later chapters hook into the engine, each read with its chapter:

    lazy.pxi       (4) calls on values of a graph
    spread.pxi     (6) calls on global tensors
    host.py        (7) ops whose values are no plain arrays
    elsewhere.pxi  (8) calls on tensors of other devices
"""
