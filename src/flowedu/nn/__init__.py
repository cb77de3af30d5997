"""Chapter 3: flow.nn. Functions now; modules come with nn.Graph in chapter 5."""
from flowedu.nn.functions import *
from flowedu.nn.conv import *
from flowedu.nn.maps import *
from flowedu.nn.norms import *
from flowedu.nn.pool import *
from flowedu.matrix_ops import tril
from flowedu.nn.losses import *
