"""Jobs of OneFlow 0.4: settings, environment, placements, views, watches, sources, checkpoints, and eager runs.
"""
