"""nn.modules.conv: base class of all convolutions, for programs that check module types."""
from flowedu.nn.modules.conv import _Conv as _ConvNd  # noqa: F401
