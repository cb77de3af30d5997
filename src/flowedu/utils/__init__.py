"""flow.utils: what surrounds training. `flow.utils.data` feeds it."""
from flowedu.utils import data
