"""From a graph to the steps that run it. Never changes meaning."""
