"""What users of OneFlow 0.2 to 0.4 type: layers, optimizers, images, data, settings of jobs."""
