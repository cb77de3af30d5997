"""Chapter 5: nn.Graph."""
from flowedu.core.trace.blocks import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.core.trace.config import GraphConfig
from flowedu.core.trace.graph import Graph
