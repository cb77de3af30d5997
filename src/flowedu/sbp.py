"""flow.sbp: layouts of a global tensor along one axis of its placement."""
from flowedu.core.sbp.names import BROADCAST as broadcast
from flowedu.core.sbp.names import PARTIAL as partial_sum
from flowedu.core.sbp.names import PARTIAL_MAX as partial_max
from flowedu.core.sbp.names import PARTIAL_MIN as partial_min
from flowedu.core.sbp.names import sbp, split

__all__ = ["broadcast", "partial_max", "partial_min", "partial_sum", "sbp", "split"]
