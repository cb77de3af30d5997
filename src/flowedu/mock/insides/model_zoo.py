"""utils.model_zoo: older names of functions of torch.hub."""
from flowedu.mock.insides.torch_hub import load_state_dict_from_url


def load_url(url: str, *args, **kwargs):
    """Raise ArgumentError: flowedu does not download models."""
    load_state_dict_from_url(url)
