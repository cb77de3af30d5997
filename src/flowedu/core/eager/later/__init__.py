"""Extensions of the engine for later chapters, each to be read with its chapter.

    lazy.pxi    (4) calls on values of a graph
    global.pxi  (6) calls on global tensors
    device.pxi  (8) calls on tensors of other devices
"""
