"""Settings of jobs and sessions: configuration, environment, views, checkpoints, eager execution."""
