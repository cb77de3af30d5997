"""Style transfer: images in the style of a painting."""
from flowedu.vision.models.neural_style_transfer.stylenet import NeuralStyleTransfer, neural_style_transfer
