"""Extensions of the engine by later chapters, each read with its chapter.

    lazy.pxi    (4) calls on values of a graph
    global.pxi  (6) calls on global tensors
    device.pxi  (8) calls on tensors of other devices
"""
