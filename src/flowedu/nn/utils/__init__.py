"""flow.nn.utils: gradient clipping, parameter vectors, parametrizations, and sequences of different lengths.
"""
from flowedu.nn.utils import parametrizations, parametrize, rnn
from flowedu.optim.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from flowedu.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from flowedu.nn.utils.weights import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
