"""Names of flow.experimental in OneFlow 0.4."""
from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

from flowedu.errors import ArgumentError
from flowedu.errors.once import say_once
from flowedu.oneflow04.custom.module import custom_op_module
from flowedu.oneflow04.functions.pad_slice_broadcast import slice_update, slice_v2
from flowedu.oneflow04.functions.shapes_and_constants import assign
from flowedu.oneflow04.functions.unique_and_finite import indexed_slices_reduce_sum, unique_with_counts
from flowedu.oneflow04.job.call_signature import enable_typing_check
from flowedu.oneflow04.job.scope import namespace as name_scope
from flowedu.oneflow04.math import reduce_sum, square
from flowedu.ops.front import front

logical_slice = slice_v2                       # slices in flowedu always apply to the logical value


def logical_slice_assign(x, value, slice_tup_list, name: str | None = None) -> None:
    """Store `value` in a slice of a variable at the end of the run: `x[start:stop:step, ...] = value`.

    Args:
        x: a variable from flow.get_variable.
        value: a blob with the shape of the slice.
        slice_tup_list: (start, stop, step) for each axis, each an int or None.
    """
    assign(x, slice_update(x, value, slice_tup_list), name=name)


@front("SquareSum")
def square_sum(x):
    """Return the sum of the squares of all elements.

    Args:
        x: a blob or tensor.

    Returns: a blob of shape (1,).
    """
    return reduce_sum.__wrapped__(square.__wrapped__(x))


def _config(**hints) -> nullcontext:
    """Accept hints for the calls of a block, without effect.

    Args:
        **hints: pipeline_stage_id_hint, num_pipeline_stages_hint, and checkpointing.

    Raises:
        ArgumentError: OneFlow 0.4 does not have the hint.
    """
    known = ("pipeline_stage_id_hint", "num_pipeline_stages_hint", "checkpointing")
    for name in hints:
        if name not in known:
            raise ArgumentError("scope.config: no such attribute of a scope", got=name,
                                expected=f"one of {', '.join(known)}", fix="leave it out")
        say_once(f"experimental.scope.config({name})",
                 "a job is one plan, of which the devices run their part")
    return nullcontext()


# `with flow.experimental.scope.config(...):` takes hints, which do nothing
scope = SimpleNamespace(config=_config)

__all__ = ["custom_op_module", "enable_typing_check", "indexed_slices_reduce_sum", "logical_slice",
           "logical_slice_assign", "name_scope", "scope", "square_sum", "unique_with_counts"]
