"""Chapter 4: job functions and their session. Its files, in reading order:

    function.py  global_function: a Python function becomes a job
    blob.py      JobBlob: a value of a job under construction
    context.py   what surrounds a job's body
    program.py   a job after its body ran on blobs
    compiled.py  its graph for one set of shapes
    session.py   all jobs and variables of a program
    values.py    conversions of arrays and containers
"""
