"""Written by `make stubs`: do not edit."""
from flowedu.distributed.comm import *
