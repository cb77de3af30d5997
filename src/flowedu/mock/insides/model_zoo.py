"""utils.model_zoo and hub: weights are not fetched from anywhere."""
from flowedu.mock.insides.torch_hub import load_state_dict_from_url as load_url  # noqa: F401
