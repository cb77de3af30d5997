"""Written by `make stubs`: do not edit."""
from flowedu.vision import (
    datasets as datasets, io as io, models as models, ops as ops, transforms as transforms, utils as utils)

__all__ = ['datasets', 'io', 'models', 'ops', 'transforms', 'utils']
