"""What a plan computes, and nothing of how: programs of steps, expressions, constants, and their rules."""
