"""From the graph to a program, independent of back ends: one file per family, and a table of all lowerings."""
