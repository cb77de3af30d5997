"""Written by `make stubs`: do not edit."""
from flowedu.tensor.array_api import *
