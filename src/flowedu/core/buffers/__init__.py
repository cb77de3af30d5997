"""Chapter 7: TensorBuffer and TensorList, for data whose size is known only at run time.

    tensor_buffer.py  TensorBuffer: an array of tensors of any shape
    tensor_list.py    TensorList: tensors end to end in one allocation
"""
from flowedu.core.buffers.tensor_buffer import TensorBlock, TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList
