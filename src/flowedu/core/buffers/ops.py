"""Between tensors and TensorBuffers. What users type, which checks what it is given, is oneflow04/buffers.py; so are lists.

They are host ops: in a job they run in Python before the plan, since no plan can hold what has no fixed size.
"""
from __future__ import annotations

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.eager.later.host import define_host
from flowedu.core.values import dtype as dt

tensor_to_buffer = define_host(
    "tensor_to_tensor_buffer(x, *, instance_dims) -> y", dtype=lambda: dt.tensor_buffer,
    shape=lambda x, instance_dims: x.shape[:x.ndim - instance_dims],
    host=lambda x, instance_dims: TensorBuffer.from_array(x, instance_dims))
buffer_to_tensor = define_host(
    "tensor_buffer_to_tensor(x, *, dtype, instance_shape) -> y", dtype=lambda dtype: dtype,
    shape=lambda x, instance_shape: x.shape + instance_shape,
    host=lambda x, dtype, instance_shape: x.to_array(dtype, instance_shape, "tensor_buffer_to_tensor"))
