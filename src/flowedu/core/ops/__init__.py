"""Chapter 2: ops. Importing this package registers the basic ones: elementwise, matmul, views, reductions."""
# Records of other families are built from `view` and `elementwise`, so these come first.
from flowedu.core.ops import view, elementwise  # isort: skip
from flowedu.core.ops import concat, matmul, reduce, update
