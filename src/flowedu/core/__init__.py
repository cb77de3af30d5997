"""The core, which the course teaches, in reading order. Each folder imports only earlier ones.

    values/   1  dtypes, Specs, arrays and their allocator, blobs, placeholders
    ops/      2  op records, the axis equation, interpreters, reverse accumulation, basic ops
    eager/    2  eager execution: the engine, its memory and threads, and Tensor
    grad/     2  the tape, and the backward pass over eager calls
    layers/   3  contexts, Module, Parameter, and update rules
    graph/    4  graphs: backward pass, passes, memory planner, plan, and executor
    job/      4  job functions and their session
    trace/    5  nn.Graph, which traces modules into graphs
    sbp/      6  several devices: layouts, signatures, their choice, boxing, ranks, global tensors
    buffers/  7  TensorBuffer and TensorList, for data whose size is known only at run time
    extensions.py  calls optional parts by name; core itself imports only errors and _kernels
"""
