"""flow.distributed: programs that run on several ranks.

    set_virtual_devices(k)   this process has k devices, and does the work of all of them
    spawn(fn, k)             k threads, each a rank
    python -m flowedu.distributed.launch --nproc_per_node k script.py     k processes (or, --engine threads, threads)
"""
from flowedu.core.sbp.ranks import set_virtual_devices
from flowedu.distributed.spawn import spawn
from flowedu.distributed.settings import debug, set_timeout
