"""flow.save and flow.load: what is kept on disk. Nothing that is loaded is ever unpickled or executed."""
from flowedu.saving.state import load, register_saver, save, saver_for
