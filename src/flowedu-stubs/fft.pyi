"""Written by `make stubs`: do not edit."""
from flowedu.tensor.fft import *
