"""Chapter 7: data whose size is known only when it is there. Its files, in reading order:

    tensor_buffer.py  TensorBuffer: an array of tensors of any shape
    tensor_list.py    TensorList: end to end in one piece of memory
"""
from flowedu.core.buffers.tensor_buffer import TensorBlock, TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
