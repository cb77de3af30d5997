"""flow.experimental: what OneFlow 0.4 had there."""
from flowedu.core.values.signature import enable_typing_check
from flowedu.oneflow04.custom.module import custom_op_module

__all__ = ["custom_op_module", "enable_typing_check"]
