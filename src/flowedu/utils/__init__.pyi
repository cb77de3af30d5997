"""Written by `make stubs`: do not edit."""
from flowedu.utils import checkpoint as checkpoint, data as data, global_view as global_view, tensorboard as tensorboard
