"""flow.experimental: what OneFlow 0.4 had there."""
from flowedu.oneflow04.custom.module import custom_op_module
from flowedu.oneflow04.job.signature import enable_typing_check

__all__ = ["custom_op_module", "enable_typing_check"]
