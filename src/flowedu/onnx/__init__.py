"""`flow.onnx.export(model, path)`, which writes a module or a graph for other runtimes."""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.onnx.export import export

__all__ = ["export"]
imported(__name__)
