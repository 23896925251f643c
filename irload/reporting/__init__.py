"""A model as one HTML page: its graph, layers, costs, findings, profile and comparisons, all inside the file."""
