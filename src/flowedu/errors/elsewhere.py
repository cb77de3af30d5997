"""Replacements for missing names: a row of left_out.py, or an entry of the tables below.

tests/errors checks that every name in a replacement exists.
"""
from __future__ import annotations

from flowedu.errors.element_types import HOLDS
from flowedu.errors.left_out import find_row
from flowedu.errors.oneflow04 import REASONS

# {name, or path if the name alone is ambiguous ("x." for an object of a module): the replacement}
ON_DEVICE = {
    "autocast_mode": "flow.amp", "get_autocast_dtype": "flow.amp.get_autocast_dtype",
    "GradScaler": "flow.amp.GradScaler",
    "flow.autograd.profiler": "flow.profiler",
    **dict.fromkeys(("ldl_factor", "ldl_solve"),
                    "flow.linalg.lu_factor, which needs no symmetry; of a positive definite matrix "
                    "flow.linalg.cholesky"),
    "multiprocessing": "flow.utils.data.DataLoader(num_workers=2) and python -m flowedu.distributed.launch "
    "start them",
    **{name: f"there is no {name}: flow.{there} holds its numbers{' up to 2**63 - 1' * (name == 'uint64')}"
       for name, there in HOLDS.items()},
    "set_default_tensor_type": "flow.set_default_dtype(flow.float64)",
    "DataParallel": "nn.parallel.DistributedDataParallel, or global tensors: model.to_global(placement, sbp)",
    "asarray": "flow.as_tensor(x)", "frombuffer": "flow.from_numpy(np.frombuffer(buffer, np.float32).copy())",
    "all_gather_into_tensor": "flow.distributed.all_gather(tensors, x)",
    "all_reduce_coalesced": "flow.distributed.all_reduce(x) for each",
    "permute_dims": "flow.permute(x, dims)", "astype": "x.to(dtype)", "matrix_transpose": "flow.Tensor.mT",
    "trapz": "flow.trapezoid(y, x)", "vecdot": "(x * y).sum(-1)",
    "pdist": "flow.cdist(x, x), which has each distance twice",
    "memory_summary": "flow.cuda.memory_stats()",
    "flow.distributed.checkpoint": "flow.save(model.state_dict(), path), and flow.load",
    **{f"flow.{path}": why for path, why in REASONS.items()},
    "x.module": "only a wrapper has one, and this is the module itself: model.state_dict()",
}


def elsewhere(prefix: str, name: str) -> str | None:
    """Return the replacement of a missing name.

    `prefix` is the text before the name in a program, such as "flow.linalg." or "x.".
    """
    import numpy as np

    row = None if prefix + name in ON_DEVICE else find_row((prefix + name).removeprefix("flow."))
    found = row.format_fix() if row else ON_DEVICE.get(prefix + name) or ON_DEVICE.get(name)
    if found or prefix not in ("flow.", "flow.linalg."):
        return found
    home = np.linalg if prefix == "flow.linalg." else np
    there = (name[0] != "_" and callable(getattr(home, name, None))
             and not isinstance(getattr(home, name), type))
    path = "np.linalg" if home is np.linalg else "np"
    return f"NumPy has one, without a gradient: {path}.{name}, of x.numpy()" if there else None
