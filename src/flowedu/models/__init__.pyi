"""Written by `make stubs`: do not edit."""
from flowedu.models import gpt as gpt
from flowedu.models.gpt import GPT as GPT
