"""Global tensors: calls on them, boxing, what users write. Whoever imports a module of this folder fills the slots that ops
leave open for them (core/ops/open.pxi)."""
from __future__ import annotations

from flowedu.core.sbp.tensor.convert import brought, logical, write_parts
from flowedu.core.sbp.tensor.interpreter import run
from flowedu.core.ops.dispatch import connect

connect(run_global=run, bring=brought, logical=logical, write_parts=write_parts)
