"""Planning: lowers a graph to a program, optimizes and compiles it. No pass changes the meaning of a program."""
