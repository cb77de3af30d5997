"""Tensors and state on disk: flow.save and flow.load. Loading never unpickles or executes anything."""
from flowedu.saving.state import load, register_saver, save, saver_for
