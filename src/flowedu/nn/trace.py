"""Which nn.Graph is being built, if any. Module.__call__ asks here, and so needs no import of chapter 5."""
from __future__ import annotations

current = None              # the Tracer in charge (nn/graph/trace.py)
