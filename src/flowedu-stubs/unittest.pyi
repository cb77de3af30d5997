"""Written by `make stubs`: do not edit."""
from flowedu.oneflow04.unittest import *
