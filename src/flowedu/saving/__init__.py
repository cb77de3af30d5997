"""flow.save and flow.load: tensors and state on disk. Loading never unpickles or executes anything."""
from flowedu.saving.state import load, register_saver, save, saver_for
