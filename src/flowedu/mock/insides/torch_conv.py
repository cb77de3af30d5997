"""nn.modules.conv: the class that all convolutions are of, as programs that walk over modules ask for it."""
from flowedu.nn.modules.conv import _Conv as _ConvNd  # noqa: F401
