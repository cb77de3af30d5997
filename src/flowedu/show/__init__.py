"""Pictures and texts of plans, graphs, memory, and routes between layouts."""
