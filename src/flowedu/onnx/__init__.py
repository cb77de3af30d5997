"""flow.onnx.export(graph, path): a graph for other runtimes."""
from flowedu.onnx.export import export

__all__ = ["export"]
