"""Chapter 3: flow.nn. Functions now; modules come with nn.Graph in chapter 5."""
from flowedu.nn.functions import *
