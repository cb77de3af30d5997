"""Written by `make stubs`: do not edit."""
from flowedu.cuda.backends import *
