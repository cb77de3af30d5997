"""flow.nn.Graph and what belongs to it; graphs that flow.save keeps, and flow.load_graph brings back."""
from flowedu.nn.graph.config import GraphConfig
from flowedu.nn.graph.graph import Graph
from flowedu.nn.graph.proxies import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.saving.graph import LoadedGraph, load_graph, save_graph

__all__ = ["Graph", "GraphConfig", "GraphModule", "GraphTensor", "LoadedGraph", "ProxyModule", "ProxyState", "load_graph",
           "save_graph"]
