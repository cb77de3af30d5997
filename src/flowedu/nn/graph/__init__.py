"""flow.nn.Graph and what belongs to it; graphs that flow.save keeps, and flow.load_graph brings back."""
from flowedu.core.trace import Graph, GraphConfig, GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.saving.graph import LoadedGraph, load_graph, save_graph

__all__ = ["Graph", "GraphConfig", "GraphModule", "GraphTensor", "LoadedGraph", "ProxyModule", "ProxyState", "load_graph",
           "save_graph"]
