"""random as PyTorch has it: the default generator of random numbers."""
from flowedu import default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401
