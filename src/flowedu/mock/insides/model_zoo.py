"""utils.model_zoo: hub's, under its older name."""
from flowedu.mock.insides.torch_hub import load_state_dict_from_url


def load_url(url: str, *args, **kwargs):
    """ArgumentError: flowedu opens no connections."""
    load_state_dict_from_url(url)
