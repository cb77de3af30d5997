"""flow.nn.utils: gradient clipping, parameters as one vector, sequences of different lengths."""
from flowedu.nn.utils import rnn
from flowedu.optim.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from flowedu.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
