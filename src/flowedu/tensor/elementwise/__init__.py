"""Elementwise functions, each also a method of Tensor; a file uses only files imported above it."""
from flowedu.tensor.elementwise.unary import *
from flowedu.tensor.elementwise.logic import *
from flowedu.tensor.elementwise.arithmetic import *
from flowedu.tensor.elementwise.activations import *
