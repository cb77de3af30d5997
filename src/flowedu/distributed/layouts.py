"""Layouts of graphs of global tensors, as GlobalLayouts, and conversion of tensors to them."""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.dispatch import GlobalLayout
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import interpreter
from flowedu.core.sbp.names import of_text, placement
from flowedu.core.sbp.sbp import Layout
from flowedu.core.sbp.tensor.convert import box_without_history, from_logical
from flowedu.core.sbp.tensor.global_layout import layout_of


def lay_at(layout: Layout) -> GlobalLayout:
    """Return the GlobalLayout of a Layout."""
    ranks = np.array(layout.devices).reshape(layout.hierarchy).tolist()
    return layout_of(placement("cpu", ranks), tuple(map(of_text, layout.sbp)))


def value_in_layout(x: Tensor, global_layout: GlobalLayout) -> Tensor:
    """Return the value of a tensor in this layout, eagerly, also while a graph is being built.

    A local tensor is taken as the whole value.
    """
    with interpreter(None):
        return (from_logical(x, global_layout) if x.global_layout is None
                else box_without_history(x, global_layout))
