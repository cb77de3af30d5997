"""Chapter 7: data whose size is known only when it is there. TensorBuffer, TensorList, their ops."""
from flowedu.core.buffers.tensor_buffer import Block, TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
from flowedu.core.buffers import ops
