"""Learning-rate schedules and optimizers of job functions: flow.optimizer."""
