"""Written by `make stubs`: do not edit."""
from flowedu.autograd.func import *
