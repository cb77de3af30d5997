"""Elementwise functions. Each is also a method of Tensor. In this order: each file uses those above it."""
from flowedu.tensor.elementwise.unary import *
from flowedu.tensor.elementwise.conditions import *
from flowedu.tensor.elementwise.arithmetic import *
from flowedu.tensor.elementwise.activations import *
