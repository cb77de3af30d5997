"""Global tensors. Importing a module of this folder fills slots of core/eager/hooks.pxi. Files, in reading order:

    global_layout.py  GlobalLayout: placement and sbp, one object for each pair
    interpreter.py    choose, box, call on every part
    convert.py        boxing with a history
    shards.py         between local and global; the dual rule
"""
from flowedu.core.sbp.tensor.convert import logical
from flowedu.core.sbp.tensor.interpreter import run
from flowedu.core.sbp.tensor.shards import box_like, write_parts
from flowedu.core.eager.dispatch import connect

connect(run_global=run, bring=box_like, logical=logical, write_parts=write_parts)
