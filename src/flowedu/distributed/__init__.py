"""flow.distributed: programs that run on several ranks.

    set_virtual_devices(k)   this process has k devices, and does the work of all of them
    spawn(fn, k)             k threads, each a rank
    python -m flowedu.distributed.launch --nproc_per_node k script.py
                             k processes, or k threads with --engine threads

Simple versions to read first are ring.py (an all-reduce) and plain_parallel.py (data parallelism). The other
modules extend core:

    ranks/, mpi/       engines
    perform.py         one rank's part of a route
    shards.py          shards on other ranks
    graph/             one graph per rank for a graph of global tensors
    rank_graphs.py     passes that remove messages from these graphs
    global_graph.py    ZeRO, pipelines, and the search in auto/
    spread.py          jobs of OneFlow 0.4 on several devices: one graph with shared memory
"""
from flowedu.core.sbp.ranks import set_virtual_devices
from flowedu.distributed.spawn import spawn
from flowedu.distributed.settings import debug, set_timeout
from flowedu.diagnostics.lazy_imports import lazy_import as _lazy_import

# groups of processes, by PyTorch's names
__getattr__, __dir__ = _lazy_import(__name__, dict.fromkeys((
    "ReduceOp", "all_gather", "all_reduce", "barrier", "broadcast", "destroy_process_group", "get_backend",
    "get_rank",
    "get_world_size", "init_process_group", "is_available", "is_initialized", "reduce"),
                                                            "flowedu.distributed.groups"))
