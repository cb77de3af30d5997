"""What later chapters hook into the engine, each read with its chapter:

    lazy.pxi       (4) calls on values of a graph
    spread.pxi     (6) calls on global tensors
    elsewhere.pxi  (8) calls on tensors of other devices
"""
