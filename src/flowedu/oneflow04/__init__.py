"""The API of OneFlow 0.2 to 0.4: layers, optimizers, images, data, and settings of jobs."""
