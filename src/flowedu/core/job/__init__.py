"""Chapter 4: job functions and their session, file by file in reading order.

    function.py  global_function: a Python function becomes a job
    blob.py      JobBlob: a value of a job under construction
    context.py   JobContext: builds the graph of a job while its body runs
    program.py   CompiledJob: a job after its body ran on blobs
    compiled.py  Compiled: the graph of a job for one set of shapes
    session.py   Session: all jobs and variables of a program
    values.py    conversions of arrays and containers
"""
