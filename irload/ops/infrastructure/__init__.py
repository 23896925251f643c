"""What a graph is held together by: inputs, constants, outputs, state and control flow."""
