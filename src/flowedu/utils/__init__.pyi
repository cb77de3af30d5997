"""Written by `make stubs`: do not edit."""
from flowedu.utils import (
    checkpoint as checkpoint, data as data, download as download, global_view as global_view, pictures as pictures,
    profiler as profiler, profiler_events as profiler_events, tensorboard as tensorboard)
