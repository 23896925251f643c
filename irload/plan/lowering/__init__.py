"""From the graph to a program, for no back end in particular: a file for each family, and a table of them all."""
