"""Chapter 7: data whose size is known only when it is there. TensorBuffer, TensorList, their ops, image ops."""
from flowedu.dynamic.tensor_buffer import Block, TensorBuffer
from flowedu.dynamic.tensor_list import TensorList
from flowedu.dynamic import ops
