"""flow.experimental: what OneFlow 0.4 had there."""
from flowedu.blob.signature import enable_typing_check
from flowedu.custom.module import custom_op_module

__all__ = ["custom_op_module", "enable_typing_check"]
