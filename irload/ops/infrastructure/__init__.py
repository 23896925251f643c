"""Infrastructure of graphs: inputs, constants, outputs, state and control flow."""
