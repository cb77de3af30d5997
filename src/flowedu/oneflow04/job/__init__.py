"""Jobs of OneFlow 0.4: settings, placements, views, watches, sources, checkpoints, and eager runs."""
