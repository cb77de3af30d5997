"""flow.optimizer: learning-rate schedules and the optimizers of job functions."""
