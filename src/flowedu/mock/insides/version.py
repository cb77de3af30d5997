"""version: what torch.version says."""
from flowedu.mock.names import VERSIONS

__version__ = VERSIONS["torch"]
cuda = hip = git_version = None
debug = False
