"""Chapter 1: values and the memory behind them."""
from flowedu._kernels.core import openmp
