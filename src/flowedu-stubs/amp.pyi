"""Written by `make stubs`: do not edit."""
from flowedu.nn.amp import *
