"""Jobs as OneFlow 0.4 had them: settings, environment, placements, views, watches, sources, checkpoints, eager runs."""
