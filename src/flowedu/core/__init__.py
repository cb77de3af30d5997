"""The course: read these folders in this order. Each imports only those above it; outside core only errors and kernels.

    values/   1  dtypes, Specs, arrays and their allocator, blobs, placeholders
    ops/      2  what an op is: its record, the axis equation, interpreters, reverse accumulation, the basic ops
    eager/    2  how it runs now: the engine, its memory and threads, Tensor
    grad/     2  the tape: backward over eager calls
    layers/   3  surroundings of a computation, Module, Parameter, update rules
    graph/    4  graphs: backward, passes, memory, plan, executor
    job/      4  job functions and their session
    trace/    5  nn.Graph: modules traced into graphs
    sbp/      6  several devices: layouts, signatures, boxing, inference, lowering, global tensors
    buffers/  7  TensorBuffer and TensorList: data whose size is known only when it is there
    extensions.py  optional parts outside of core, called by name
"""
