"""Chapter 5: nn.Graph."""
from flowedu.nn.graph.proxies import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.nn.graph.config import GraphConfig
from flowedu.core.trace.graph import Graph
