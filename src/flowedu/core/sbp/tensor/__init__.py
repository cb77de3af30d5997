"""Global tensors.

    global_layout.py  GlobalLayout: placement and sbp, one object for each pair
    interpreter.py    choose a signature, box the inputs, call the op on every part
    convert.py        differentiable boxing
    shards.py         conversion between local and global tensors; the dual rule
"""
from flowedu.core.sbp.tensor.convert import logical
from flowedu.core.sbp.tensor.interpreter import run
from flowedu.core.sbp.tensor.shards import box_like, write_parts
from flowedu.core.eager.dispatch import connect

connect(run_global=run, bring=box_like, logical=logical, write_parts=write_parts)
