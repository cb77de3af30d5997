"""User ops: kernels and gradients in Python (op), OneFlow's builder (builder), ops of a folder (module)."""
from flowedu.oneflow04.custom.builder import (
    consistent_user_op_builder, consistent_user_op_module_builder, user_op_builder, user_op_module_builder)
from flowedu.oneflow04.custom.libraries import LibraryError, load_library, load_library_now
from flowedu.oneflow04.custom.module import custom_op_module
from flowedu.ops.custom.op import custom_op
