"""Data sets and loaders: `flow.data.load_mnist`; `python -m flowedu.data` lists what is here and fetches the rest."""
from flowedu.data.mnist import load_mnist
