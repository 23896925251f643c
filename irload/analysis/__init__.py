"""Static costs and summaries of a model: multiply-accumulates, memory, and the view in a notebook."""
