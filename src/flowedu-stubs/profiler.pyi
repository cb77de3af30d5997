"""Written by `make stubs`: do not edit."""
from flowedu.utils.profiler import *
