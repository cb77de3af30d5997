"""Written by `make stubs`: do not edit."""
from flowedu.oneflow04.layers import *
